import type { Principal } from '#platform/access/principal.ts';
import { visibleClusters } from '#platform/access/visibility.ts';
import type { Context } from '#platform/context.ts';
import type { Scope } from '#platform/database/index.ts';
import * as queries from '#resources/argo-cd/queries.ts';
import { kubernetesOf } from '#resources/cluster/index.ts';

/**
 * Lists every Argo CD of an organization with its destinations, as last read. Destinations are split into those mapped to a cluster of the
 * organization and the rest.
 */
export async function listInstances(context: Context, principal: Principal, scope: Scope) {
  const visible = visibleClusters(principal, scope.organizationId);
  const instances = await queries.listInstances(context.db, scope).where(visible).execute();
  const linked = Map.groupBy(
    await queries.listLinked(context.db, scope).where(visible).execute(),
    (row) => row.argo_cd_id,
  );
  const unlinked = Map.groupBy(await queries.listUnlinked(context.db, scope), (row) => row.argo_cd_id);
  return {
    results: instances.map((row) => ({
      agent_cluster_id: row.cluster_id,
      agent_cluster_name: row.cluster_name,
      agent_cluster_cloud_provider: row.cloud_provider,
      credentials_id: row.id,
      argocd_url: row.url,
      status: row.status,
      last_checked_at: (row.last_checked_at ?? row.updated_at).toISOString(),
      linked_clusters: (linked.get(row.id) ?? []).map((one) => ({
        argocd_cluster_url: one.url,
        argocd_cluster_name: one.name ?? one.url,
        qovery_cluster_id: one.cluster_id,
        qovery_cluster_name: one.cluster_name,
        qovery_cluster_cloud_provider: one.cloud_provider,
        qovery_cluster_type: one.kubernetes ?? kubernetesOf(one.runtime),
        applications_count: one.applications ?? 0,
      })),
      unlinked_clusters: (unlinked.get(row.id) ?? []).map((one) => ({
        argocd_cluster_url: one.url,
        argocd_cluster_name: one.name,
        applications_count: one.applications,
      })),
    })),
  };
}
