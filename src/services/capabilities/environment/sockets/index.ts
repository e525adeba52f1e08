import type { Socket } from '#platform/sockets/index.ts';
import { deploymentLogSocket } from '#services/capabilities/environment/sockets/deployment-logs.ts';
import type { EnvironmentSocketNeeds } from '#services/capabilities/environment/sockets/needs.ts';
import { statusSockets } from '#services/capabilities/environment/sockets/statuses.ts';

/** Web sockets of environments. */
export const environmentSockets = (needs: EnvironmentSocketNeeds): Socket[] => [
  ...statusSockets(needs),
  deploymentLogSocket(needs),
];
