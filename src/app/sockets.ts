import { noRuntime } from '#runtimes/no-runtime.ts';
import { noStreams } from '#platform/events/stream.ts';
import type { Socket } from '#platform/sockets/index.ts';
import { clusterNeeds } from '#app/clusters.ts';
import { clusterSockets, type ClusterSocketNeeds } from '#resources/cluster/index.ts';
import { KINDS } from '#services/mount.ts';
import { environmentSockets } from '#services/capabilities/environment/sockets/index.ts';
import {
  listClusterNodes,
  measureCluster,
  serviceSockets,
  type ServiceSocketNeeds,
} from '#services/capabilities/service/sockets/index.ts';

const KINDS_WITH_RUNS = KINDS.filter(({ capabilities }) => capabilities?.executions).map(({ kind }) => kind);

/** Every web socket of the program. */
export function allSockets(needs: Partial<ServiceSocketNeeds & ClusterSocketNeeds> = {}): Socket[] {
  const all = { streams: noStreams, runtimeOf: noRuntime, kindsWithRuns: KINDS_WITH_RUNS, ...needs };
  const clusters: ClusterSocketNeeds = {
    nodeUsage: clusterNeeds().nodeUsage,
    clusterNodes: (cluster) => listClusterNodes(all, cluster),
    measureCluster: (context, cluster) => measureCluster(context, all, cluster),
    ...needs,
  };
  return [...environmentSockets(all), ...serviceSockets(all), ...clusterSockets(clusters)];
}
