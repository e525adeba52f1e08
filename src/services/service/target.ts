import { lockRunningOf } from '#deployments/index.ts';
import type { Target } from '#platform/http/route.ts';
import type { HolderTarget, ServiceKind } from '#services/service/holder.ts';
import { findServiceById, lockService, type ServiceRow } from '#services/service/queries.ts';

export type ServiceTarget = ServiceRow &
  HolderTarget & { projectId: string; environmentId: string; serviceId: string; mode: string };

/** Loads a service by the parameter of a path: of one kind, or of any kind without one. Writes lock its row. */
export const serviceTarget = (param: string, name: string, kind?: ServiceKind): Target<ServiceTarget> => ({
  name,
  param,
  tellsAccess: true,
  find: async (db, id, organizationIds, { lock, userId }) => {
    if (lock && !(await lockService(db, organizationIds, id))) return undefined;
    const row = await findServiceById(db, organizationIds, id, userId);
    if (!row || (kind && row.kind !== kind)) return undefined;
    return {
      ...row,
      organizationId: row.organization_id,
      projectId: row.project_id,
      environmentId: row.environment_id,
      serviceId: row.id,
      mode: row.environment_mode,
    };
  },
});

/** Returns the cluster that a service is on, and its machine, to look up its runtime. */
export const clusterOf = (service: Pick<ServiceTarget, 'cluster_id' | 'cluster_runtime' | 'cluster_node_id'>) => ({
  id: service.cluster_id,
  runtime: service.cluster_runtime,
  nodeId: service.cluster_node_id,
});

/**
 * Loads a service for a request that cancels its deployment. The running deployment is locked before the service, in the order in which its
 * worker locks both; otherwise they could deadlock.
 */
export const cancellingTarget = (target: Target<ServiceTarget>): Target<ServiceTarget> => ({
  ...target,
  find: async (db, id, organizationIds, { lock, userId }) => {
    if (lock) await lockRunningOf(db, organizationIds, id);
    return target.find(db, id, organizationIds, { lock, userId });
  },
});
