import type { Socket } from '#platform/sockets/index.ts';
import { serviceMetricsSocket } from '#services/capabilities/service/sockets/metrics.ts';
import type { ServiceSocketNeeds } from '#services/capabilities/service/sockets/needs.ts';
import { podsSocket, portForwardSocket } from '#services/capabilities/service/sockets/port-forward.ts';
import { serviceLogSocket } from '#services/capabilities/service/sockets/service-logs.ts';
import { ephemeralShellSocket, shellSocket } from '#services/capabilities/service/sockets/shell.ts';

export { listClusterNodes, measureCluster } from '#services/capabilities/service/sockets/cluster-instances.ts';
export type { ServiceSocketNeeds };

/** Web sockets of services. */
export const serviceSockets = (needs: ServiceSocketNeeds): Socket[] => [
  serviceLogSocket(needs),
  serviceMetricsSocket(needs),
  shellSocket(needs),
  ephemeralShellSocket,
  portForwardSocket(needs),
  podsSocket(needs),
];
