import type { Target } from '#platform/http/route.ts';
import { findClusterById, lockCluster, type ClusterRow } from '#resources/cluster/queries.ts';

export type ClusterTarget = ClusterRow & { organizationId: string; clusterId: string };

/**
 * Loads the cluster of a path, under an organization's path that organization's only. In writes its row is locked.
 */
export const clusterTarget: Target<ClusterTarget> = {
  name: 'Cluster',
  param: 'clusterId',
  find: async (db, id, organizationIds, lock) => {
    if (lock && !(await lockCluster(db, organizationIds, id))) return undefined;
    const row = await findClusterById(db, organizationIds, id);
    return row && { ...row, organizationId: row.organization_id, clusterId: row.id };
  },
};
