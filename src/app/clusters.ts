import { measureNode, measureNodeUsage } from '#clusters/node-metrics.ts';
import type { ClusterNeeds, ClusterSocketNeeds } from '#resources/cluster/index.ts';
import { requireMachine } from '#platform/machines/elsewhere.ts';
import { holdCredentials } from '#resources/credentials/index.ts';
import { holdGroups } from '#resources/metadata-group/index.ts';
import { readServiceSeries } from '#services/metrics/index.ts';
import { stopEnvironments } from '#services/capabilities/environment/actions/stop-cluster.ts';

/** Returns the functions that clusters need from the rest of the program. `nodeId` is this machine, the only one measured here. */
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
  serviceSeries: readServiceSeries,
  nodeMetrics: async (machineId) => measureNode(requireMachine(nodeId, machineId)),
  nodeUsage: async (machineId) => measureNodeUsage(requireMachine(nodeId, machineId)),
});
