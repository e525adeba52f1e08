import { measureNode, measureNodeUsage } from '#clusters/node-metrics.ts';
import type { ClusterNeeds, ClusterSocketNeeds } from '#resources/cluster/index.ts';
import { holdCredentials } from '#resources/credentials/index.ts';
import { holdGroups } from '#resources/metadata-group/index.ts';
import { stopEnvironments } from '#services/capabilities/environment/actions/stop-cluster.ts';

/**
 * Returns the functions that clusters need from the rest of the program. `nodeId` is this machine: metrics of other machines are not
 * available here.
 */
export const clusterNeeds = (nodeId: string | null = null): ClusterNeeds & Pick<ClusterSocketNeeds, 'nodeUsage'> => ({
  holdCredentials: async ({ db }, organizationId, id) => {
    const row = await holdCredentials(db, { organizationId }, id);
    return row && { id: row.id, name: row.name, cloudProvider: row.cloud_provider };
  },
  unknownLabelsGroups: async (context, organizationId, ids) => {
    const known = await holdGroups(context.db, { organizationId }, 'LABELS', ids);
    return ids.filter((id) => !known.includes(id));
  },
  stopEnvironments,
  nodeMetrics: async (cluster) => (nodeId !== null && cluster.node_id === nodeId ? measureNode(nodeId) : undefined),
  nodeUsage: async (cluster) => (nodeId !== null && cluster.node_id === nodeId ? measureNodeUsage(nodeId) : undefined),
});
