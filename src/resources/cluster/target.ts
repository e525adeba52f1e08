import type { Target } from '#platform/http/route.ts';
import { findClusterById, lockCluster, type ClusterRow } from '#resources/cluster/queries.ts';

export type ClusterTarget = ClusterRow & { organizationId: string; clusterId: string };

/**
 * Loads the cluster of a path, under an organization's path that organization's only. In writes its row is locked.
 */
export const clusterTarget: Target<ClusterTarget> = {
  name: 'Cluster',
  param: 'clusterId',
  tellsAccess: true,
  find: async (db, id, organizationIds, { lock, userId }) => {
    if (lock && !(await lockCluster(db, organizationIds, id))) return undefined;
    const row = await findClusterById(db, organizationIds, id, userId);
    return row && { ...row, organizationId: row.organization_id, clusterId: row.id };
  },
};

/** Loads the cluster of a path in which existing clients send a nil organization id. */
export const clusterOfAnyOrganization: Target<ClusterTarget> = { ...clusterTarget, inAnyOrganization: true };
