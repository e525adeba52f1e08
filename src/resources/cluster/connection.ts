import type { Platform } from '#platform/context.ts';
import type { Database } from '#platform/database/index.ts';
import { advancedSettingsOf } from '#resources/cluster/advanced-settings.ts';
import { openClusterSecret } from '#resources/cluster/secrets.ts';
import type { ClusterAccess } from '#runtimes/runtime.ts';

/** Returns what changes with the kubeconfig of a cluster; null if it has none. */
export async function connectionVersion(db: Database, clusterId: string): Promise<string | null> {
  const row = await db
    .selectFrom('cluster_secret')
    .select('updated_at')
    .where('cluster_id', '=', clusterId)
    .where('name', '=', 'kubeconfig')
    .executeTakeFirst();
  return row ? row.updated_at.toISOString() : null;
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
  if (!row) return null;
  const scope = { organizationId: row.organization_id };
  const text = await openClusterSecret(platform, scope, clusterId, 'kubeconfig');
  if (text === null) return null;
  // Loaded when one is there: few installations have any.
  const { readAccess } = await import('#resources/cluster/kubeconfig.ts');
  return readAccess(row.organization_id, text);
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
