import type { Route } from '#platform/http/route.ts';
import type { ClusterNeeds } from '#resources/cluster/needs.ts';
import { actionRoutes } from '#resources/cluster/routes/actions.ts';
import { configurationRoutes } from '#resources/cluster/routes/configuration.ts';
import { kubernetesRoutes } from '#resources/cluster/routes/kubernetes.ts';
import { observationRoutes } from '#resources/cluster/routes/observation.ts';
import { recordRoutes } from '#resources/cluster/routes/record.ts';
import { stateRoutes } from '#resources/cluster/routes/state.ts';

/** Every endpoint of clusters. */
export const clusterRoutes = (needs: ClusterNeeds): Route[] => [
  ...recordRoutes(needs),
  ...stateRoutes,
  ...actionRoutes(needs),
  ...configurationRoutes(needs),
  ...observationRoutes(needs),
  ...kubernetesRoutes,
];
