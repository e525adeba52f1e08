import type { Platform } from '#platform/context.ts';
import type { Database, Scope } from '#platform/database/index.ts';
import { advancedSettingsOf } from '#resources/cluster/advanced-settings.ts';
import { mayUseOwnAccount, ownAccess, ownVersion } from '#resources/cluster/own-account.ts';
import { findRemains, openClusterSecret, openRemains } from '#resources/cluster/secrets.ts';
import type { ClusterAccess } from '#runtimes/runtime.ts';

type Parts = Pick<Platform, 'db' | 'settings'>;

/**
 * Returns what changes with the credentials of a cluster; null if it has none. A deleted one keeps its kubeconfig until nothing of it is
 * left. Throws RuntimeError if they cannot be read.
 */
export async function connectionVersion(parts: Parts, clusterId: string): Promise<string | null> {
  const row = await findCluster(parts, clusterId);
  if (!row) return (await findRemains(parts.db, clusterId))?.created_at.toISOString() ?? null;
  if (row.kubeconfigAt) return row.kubeconfigAt.toISOString();
  return (await mayUseOwnAccount(parts, row)) ? ownVersion(parts.settings) : null;
}

/**
 * Returns how a Kubernetes cluster is reached, for its runtime alone: by its kubeconfig, else by the account of this process where the
 * operator allows that. Null if neither. Throws RuntimeError if the account cannot be read.
 */
export async function openConnection(
  platform: Parts & Pick<Platform, 'vault'>,
  clusterId: string,
): Promise<ClusterAccess | null> {
  const row = await findCluster(platform, clusterId);
  if (!row) return openLastConnection(platform, clusterId);
  const scope = { organizationId: row.organization_id };
  const text = await openClusterSecret(platform, scope, clusterId, 'kubeconfig');
  if (text !== null) return accessIn(row.organization_id, text);
  return (await mayUseOwnAccount(platform, row)) ? ownAccess(platform.settings) : null;
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

/** Stores until when the kubeconfig of a cluster is valid, if that is not known yet. */
export async function noteConnectionEnd(
  context: Pick<Platform, 'db' | 'vault'>,
  scope: Scope,
  clusterId: string,
): Promise<void> {
  const { noteKubeconfigEnd } = await import('#resources/cluster/kubeconfig-end.ts');
  await noteKubeconfigEnd(context, scope, clusterId);
}

const findCluster = ({ db }: Parts, clusterId: string) =>
  db
    .selectFrom('cluster')
    .leftJoin('cluster_secret as secret', (join) =>
      join.onRef('secret.cluster_id', '=', 'cluster.id').on('secret.name', '=', 'kubeconfig'),
    )
    .select(['cluster.organization_id', 'cluster.runtime', 'secret.updated_at as kubeconfigAt'])
    .where('cluster.id', '=', clusterId)
    .executeTakeFirst();

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
