import type { Platform } from '#platform/context.ts';
import type { Database } from '#platform/database/index.ts';
import { advancedSettingsOf } from '#resources/cluster/advanced-settings.ts';
import { findRemains, openClusterSecret, openRemains } from '#resources/cluster/secrets.ts';
import type { ClusterAccess } from '#runtimes/runtime.ts';

/** Returns what changes with the kubeconfig of a cluster; null if it has none. A deleted one keeps it until nothing of it is left. */
export async function connectionVersion(db: Database, clusterId: string): Promise<string | null> {
  const row = await db
    .selectFrom('cluster_secret')
    .select('updated_at')
    .where('cluster_id', '=', clusterId)
    .where('name', '=', 'kubeconfig')
    .executeTakeFirst();
  return (row?.updated_at ?? (await findRemains(db, clusterId))?.created_at)?.toISOString() ?? null;
}

/** Returns how a Kubernetes cluster is reached, for its runtime alone; null if it has no kubeconfig. */
export async function openConnection(
  platform: Pick<Platform, 'db' | 'vault'>,
  clusterId: string,
): Promise<ClusterAccess | null> {
  const row = await platform.db
    .selectFrom('cluster')
    .select('organization_id')
    .where('id', '=', clusterId)
    .executeTakeFirst();
  if (!row) return openLastConnection(platform, clusterId);
  const scope = { organizationId: row.organization_id };
  const text = await openClusterSecret(platform, scope, clusterId, 'kubeconfig');
  return text === null ? null : accessIn(row.organization_id, text);
}

/** Returns how a deleted cluster is reached, for the removal of what is left there. */
async function openLastConnection(
  platform: Pick<Platform, 'db' | 'vault'>,
  clusterId: string,
): Promise<ClusterAccess | null> {
  const remains = await openRemains(platform, clusterId);
  return remains && accessIn(remains.organizationId, remains.text);
}

async function accessIn(organizationId: string, kubeconfig: string): Promise<ClusterAccess> {
  // Loaded when one is there: few installations have any.
  const { readAccess } = await import('#resources/cluster/kubeconfig.ts');
  return readAccess(organizationId, kubeconfig);
}

/** Returns the organization of a cluster, and its registry for built images with the tags for it; undefined if the cluster is gone. */
export async function findRegistryOfCluster(db: Database, clusterId: string) {
  const row = await db
    .selectFrom('cluster')
    .select(['organization_id', 'container_registry_id', 'advanced_settings'])
    .where('id', '=', clusterId)
    .executeTakeFirst();
  if (!row) return undefined;
  const tags = advancedSettingsOf(row)['cloud_provider.container_registry.tags'] as Record<string, string>;
  return { organizationId: row.organization_id, registryId: row.container_registry_id, tags };
}
