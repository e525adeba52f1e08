import type { Insertable } from 'kysely';
import { json } from '#platform/database/json.ts';
import { sql, type Database, type DB, type Scope } from '#platform/database/index.ts';

const SERVICES_COUNT = sql<number>`(select count(*) from service where service.helm_repository_id = helm_repository.id
  and service.organization_id = helm_repository.organization_id)`;

const selectHelmRepositories = (db: Database) =>
  db.selectFrom('helm_repository').selectAll().select(SERVICES_COUNT.as('services'));

export type HelmRepositoryRow = NonNullable<Awaited<ReturnType<typeof findHelmRepositoryById>>>;

/** Helm repositories of an organization in creation order. */
export const listHelmRepositories = (db: Database, scope: Scope) =>
  selectHelmRepositories(db).where('organization_id', '=', scope.organizationId).orderBy('created_at').orderBy('id');

export const findHelmRepositoryById = (db: Database, organizationIds: string[], id: string) =>
  selectHelmRepositories(db)
    .where('organization_id', '=', sql<string>`any(${organizationIds})`)
    .where('id', '=', id)
    .executeTakeFirst();

/** Finds a repository that a body names and locks it against deletion until the commit. */
export const holdHelmRepository = (db: Database, scope: Scope, id: string) =>
  db
    .selectFrom('helm_repository')
    .selectAll()
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .forKeyShare()
    .executeTakeFirst();

/** Locks the row against other writes until the commit. */
export const lockHelmRepository = (db: Database, organizationIds: string[], id: string) =>
  db
    .selectFrom('helm_repository')
    .select('id')
    .where('organization_id', '=', sql<string>`any(${organizationIds})`)
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst();

export interface HelmRepositoryColumns {
  name: string;
  description: string | null;
  kind: string;
  url: string;
  skip_tls_verification: boolean;
  config: object;
  secrets: Buffer | null;
}

const toRow = ({ config, ...columns }: HelmRepositoryColumns) => ({ ...columns, config: json(config) });

export const insertHelmRepository = (
  db: Database,
  repository: HelmRepositoryColumns & Pick<Insertable<DB['helm_repository']>, 'id' | 'organization_id'>,
) => {
  const { id, organization_id, ...columns } = repository;
  return db
    .insertInto('helm_repository')
    .values({ id, organization_id, ...toRow(columns) })
    .execute();
};

export const updateHelmRepository = (db: Database, scope: Scope, id: string, columns: HelmRepositoryColumns) =>
  db
    .updateTable('helm_repository')
    .set({ ...toRow(columns), updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();

export const deleteHelmRepositoryRow = (db: Database, scope: Scope, id: string) =>
  db.deleteFrom('helm_repository').where('organization_id', '=', scope.organizationId).where('id', '=', id).execute();
