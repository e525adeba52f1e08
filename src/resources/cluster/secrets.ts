import { sql, type Database, type Scope } from '#platform/database/index.ts';
import type { Context, Platform } from '#platform/context.ts';

type SecretName = 'kubeconfig' | 'dns';

const placeOf = (clusterId: string, name: SecretName): string => `cluster_secret/${clusterId}/${name}`;

/** Stores a secret of a cluster, encrypted, over the one before. */
export async function saveClusterSecret(
  { db, vault }: Pick<Context, 'db' | 'vault'>,
  scope: Scope,
  clusterId: string,
  name: SecretName,
  text: string,
): Promise<void> {
  const value = await vault.seal(db, scope.organizationId, placeOf(clusterId, name), text);
  await db
    .insertInto('cluster_secret')
    .values({ organization_id: scope.organizationId, cluster_id: clusterId, name, value })
    .onConflict((conflict) => conflict.columns(['cluster_id', 'name']).doUpdateSet({ value, updated_at: sql`now()` }))
    .execute();
}

export const deleteClusterSecret = (db: Database, scope: Scope, clusterId: string, name: SecretName) =>
  db
    .deleteFrom('cluster_secret')
    .where('organization_id', '=', scope.organizationId)
    .where('cluster_id', '=', clusterId)
    .where('name', '=', name)
    .execute();

/** Returns the kubeconfig of a deleted cluster on which something is left to be removed, in the clear; null for any other. */
export async function openRemains(
  { db, vault }: Pick<Platform, 'db' | 'vault'>,
  clusterId: string,
): Promise<{ organizationId: string; text: string } | null> {
  const row = await findRemains(db, clusterId);
  if (!row) return null;
  const { organization_id: organizationId, kubeconfig } = row;
  return { organizationId, text: await vault.open(db, organizationId, placeOf(clusterId, 'kubeconfig'), kubeconfig) };
}

export const findRemains = (db: Database, clusterId: string) =>
  db
    .selectFrom('cluster_remains')
    .select(['organization_id', 'kubeconfig', 'created_at'])
    .where('cluster_id', '=', clusterId)
    .executeTakeFirst();

/** A secret of a cluster in the clear, for the program itself; null if it has none. */
export async function openClusterSecret(
  { db, vault }: Pick<Platform, 'db' | 'vault'>,
  scope: Scope,
  clusterId: string,
  name: SecretName,
): Promise<string | null> {
  const row = await db
    .selectFrom('cluster_secret')
    .select('value')
    .where('organization_id', '=', scope.organizationId)
    .where('cluster_id', '=', clusterId)
    .where('name', '=', name)
    .executeTakeFirst();
  return row ? vault.open(db, scope.organizationId, placeOf(clusterId, name), row.value) : null;
}

/** Opens the kubeconfig of a cluster if its end was not read since it was stored. `value` is the stored form. */
export async function openUnreadKubeconfig(
  { db, vault }: Pick<Context, 'db' | 'vault'>,
  scope: Scope,
  clusterId: string,
): Promise<{ value: Buffer; text: string } | undefined> {
  const row = await db
    .selectFrom('cluster_secret')
    .select('value')
    .where('organization_id', '=', scope.organizationId)
    .where('cluster_id', '=', clusterId)
    .where('name', '=', 'kubeconfig')
    .where(sql<boolean>`end_read_at is distinct from updated_at`)
    .executeTakeFirst();
  if (!row) return undefined;
  const text = await vault.open(db, scope.organizationId, placeOf(clusterId, 'kubeconfig'), row.value);
  return { value: row.value, text };
}

/** Stores the end of the credentials of a kubeconfig, unless another one has taken its place. */
export const saveKubeconfigEnd = (db: Database, scope: Scope, clusterId: string, value: Buffer, endsAt: Date | null) =>
  db
    .updateTable('cluster_secret')
    .set({ ends_at: endsAt, end_read_at: sql`updated_at` })
    .where('organization_id', '=', scope.organizationId)
    .where('cluster_id', '=', clusterId)
    .where('name', '=', 'kubeconfig')
    .where('value', '=', value)
    .execute();
