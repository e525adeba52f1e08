import { sql, type Database, type Scope } from '#platform/database/index.ts';
import type { ArgoCdFailure } from '#resources/argo-cd/api.ts';

/** Columns without the token, which `findAccess` reads. */
const COLUMNS = [
  'id',
  'organization_id',
  'cluster_id',
  'url',
  'status',
  'reason',
  'message',
  'last_checked_at',
  'reached_at',
  'created_at',
  'updated_at',
] as const;

export const findByCluster = (db: Database, scope: Scope, clusterId: string) =>
  db
    .selectFrom('argo_cd')
    .select(COLUMNS)
    .where('organization_id', '=', scope.organizationId)
    .where('cluster_id', '=', clusterId)
    .executeTakeFirst();

export type ArgoCdRow = NonNullable<Awaited<ReturnType<typeof findByCluster>>>;

/** Locks the row against other writes until the commit. */
export const lockByCluster = (db: Database, scope: Scope, clusterId: string) =>
  db
    .selectFrom('argo_cd')
    .select(COLUMNS)
    .where('organization_id', '=', scope.organizationId)
    .where('cluster_id', '=', clusterId)
    .forUpdate()
    .executeTakeFirst();

/** Selects an Argo CD by its own id or by its cluster's. */
export type Which = { id: string } | { clusterId: string };

/** Returns the address and encrypted token, for calling it. */
export const findAccess = (db: Database, scope: Scope, which: Which) => {
  const [column, id] = 'id' in which ? (['id', which.id] as const) : (['cluster_id', which.clusterId] as const);
  return db
    .selectFrom('argo_cd')
    .select(['id', 'cluster_id', 'url', 'token'])
    .where('organization_id', '=', scope.organizationId)
    .where(column, '=', id)
    .executeTakeFirst();
};

/** Result of a check. */
export interface Finding {
  status: 'connected' | 'error';
  reason: ArgoCdFailure | null;
  message: string | null;
}

/**
 * Writes the configuration of a cluster's Argo CD over the present one. Who reads the present one loses the claim: what it read is of
 * another address or token.
 */
export const saveArgoCd = (
  db: Database,
  row: Finding & { id: string; organization_id: string; cluster_id: string; url: string; token: Buffer },
) => {
  const { id, organization_id, cluster_id, ...change } = row;
  const checked = {
    last_checked_at: sql<Date>`now()`,
    next_at: sql<Date>`now()`,
    claim_token: null,
    lease_until: null,
  };
  return db
    .insertInto('argo_cd')
    .values({ id, organization_id, cluster_id, ...change, last_checked_at: sql`now()` })
    .onConflict((conflict) =>
      conflict.column('cluster_id').doUpdateSet({ ...change, ...checked, updated_at: sql`now()` }),
    )
    .execute();
};

export const noteFinding = (db: Database, scope: Scope, id: string, finding: Finding) =>
  db
    .updateTable('argo_cd')
    .set({ ...finding, last_checked_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();

export const deleteArgoCd = (db: Database, scope: Scope, id: string) =>
  db.deleteFrom('argo_cd').where('organization_id', '=', scope.organizationId).where('id', '=', id).execute();

/** Schedules an immediate read and revokes the current claim, whose settings are out of date. */
export const readSoon = (db: Database, scope: Scope, id: string) =>
  db
    .updateTable('argo_cd')
    .set({ next_at: sql`now()`, claim_token: null, lease_until: null })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();

/** Every Argo CD of an organization with the cluster that it belongs to, in creation order. */
export const listInstances = (db: Database, scope: Scope) =>
  db
    .selectFrom('argo_cd')
    .innerJoin('cluster', 'cluster.id', 'argo_cd.cluster_id')
    .select(['argo_cd.id', 'argo_cd.url', 'argo_cd.status', 'argo_cd.last_checked_at', 'argo_cd.updated_at'])
    .select(['cluster.id as cluster_id', 'cluster.name as cluster_name', 'cluster.cloud_provider'])
    .where('argo_cd.organization_id', '=', scope.organizationId)
    .orderBy('argo_cd.created_at')
    .orderBy('argo_cd.id');

/** Destinations that are mapped, whether an app goes there or not. */
export const listLinked = (db: Database, scope: Scope) =>
  db
    .selectFrom('argo_cd_mapping as mapping')
    .innerJoin('cluster', 'cluster.id', 'mapping.cluster_id')
    .leftJoin('argo_cd_destination as destination', (join) =>
      join
        .onRef('destination.argo_cd_id', '=', 'mapping.argo_cd_id')
        .onRef('destination.url', '=', 'mapping.url')
        .onRef('destination.organization_id', '=', 'mapping.organization_id'),
    )
    .select(['mapping.argo_cd_id', 'mapping.url', 'destination.name', 'destination.applications'])
    .select(['cluster.id as cluster_id', 'cluster.name as cluster_name', 'cluster.cloud_provider', 'cluster.runtime'])
    .select(sql<string | null>`cluster.spec ->> 'kubernetes'`.as('kubernetes'))
    .where('mapping.organization_id', '=', scope.organizationId)
    .orderBy('mapping.created_at')
    .orderBy('mapping.url');

/** Lists destinations that Argo CD knows and that are not mapped to a cluster yet. */
export const listUnlinked = (db: Database, scope: Scope) =>
  db
    .selectFrom('argo_cd_destination as destination')
    .select(['destination.argo_cd_id', 'destination.url', 'destination.name', 'destination.applications'])
    .where('destination.organization_id', '=', scope.organizationId)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('argo_cd_mapping as mapping')
            .select('mapping.url')
            .whereRef('mapping.argo_cd_id', '=', 'destination.argo_cd_id')
            .whereRef('mapping.url', '=', 'destination.url'),
        ),
      ),
    )
    .orderBy('destination.name')
    .orderBy('destination.url')
    .execute();

export const findMapping = (db: Database, scope: Scope, argoCdId: string, url: string) =>
  db
    .selectFrom('argo_cd_mapping')
    .select(['url', 'cluster_id'])
    .where('organization_id', '=', scope.organizationId)
    .where('argo_cd_id', '=', argoCdId)
    .where('url', '=', url)
    .executeTakeFirst();

export const saveMapping = (
  db: Database,
  mapping: { organization_id: string; argo_cd_id: string; url: string; cluster_id: string },
) =>
  db
    .insertInto('argo_cd_mapping')
    .values(mapping)
    .onConflict((conflict) => conflict.columns(['argo_cd_id', 'url']).doUpdateSet({ cluster_id: mapping.cluster_id }))
    .execute();

export const deleteMapping = (db: Database, scope: Scope, argoCdId: string, url: string) =>
  db
    .deleteFrom('argo_cd_mapping')
    .where('organization_id', '=', scope.organizationId)
    .where('argo_cd_id', '=', argoCdId)
    .where('url', '=', url)
    .execute();
