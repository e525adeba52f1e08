import type { Socket } from '#platform/sockets/index.ts';
import { deploymentLogSocket } from '#services/capabilities/sockets/deployment-logs.ts';
import { serviceMetricsSocket } from '#services/capabilities/sockets/metrics.ts';
import type { ServiceSocketNeeds } from '#services/capabilities/sockets/needs.ts';
import { podsSocket, portForwardSocket } from '#services/capabilities/sockets/port-forward.ts';
import { serviceLogSocket } from '#services/capabilities/sockets/service-logs.ts';
import { ephemeralShellSocket, shellSocket } from '#services/capabilities/sockets/shell.ts';
import { statusSockets } from '#services/capabilities/sockets/statuses.ts';

export { measureCluster } from '#services/capabilities/sockets/cluster-instances.ts';
export type { ServiceSocketNeeds };

/** Web sockets of environments and services. */
export const serviceSockets = (needs: ServiceSocketNeeds): Socket[] => [
  serviceLogSocket(needs),
  ...statusSockets(needs),
  deploymentLogSocket(needs),
  serviceMetricsSocket(needs),
  shellSocket(needs),
  ephemeralShellSocket,
  portForwardSocket(needs),
  podsSocket(needs),
];
