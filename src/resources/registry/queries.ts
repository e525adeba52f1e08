import type { Insertable } from 'kysely';
import { json } from '#platform/database/json.ts';
import { sql, type Database, type DB, type Scope } from '#platform/database/index.ts';

const SERVICES_COUNT = sql<number>`(select count(*) from service where service.container_registry_id = container_registry.id
  and service.organization_id = container_registry.organization_id)`;

/** First cluster whose built images are pushed to the registry. */
const CLUSTER = sql<{
  id: string;
  name: string;
} | null>`(select json_build_object('id', c.id, 'name', c.name) from cluster c
  where c.container_registry_id = container_registry.id and c.organization_id = container_registry.organization_id
  order by c.created_at, c.id limit 1)`;

const selectRegistries = (db: Database) =>
  db
    .selectFrom('container_registry')
    .selectAll()
    .select([SERVICES_COUNT.as('services'), CLUSTER.as('cluster')]);

export type RegistryRow = NonNullable<Awaited<ReturnType<typeof findRegistryById>>>;

/** Registries of an organization in creation order. */
export const listRegistries = (db: Database, scope: Scope) =>
  selectRegistries(db).where('organization_id', '=', scope.organizationId).orderBy('created_at').orderBy('id');

export const findRegistryById = (db: Database, organizationIds: string[], id: string) =>
  selectRegistries(db)
    .where('organization_id', '=', sql<string>`any(${organizationIds})`)
    .where('id', '=', id)
    .executeTakeFirst();

/** Finds a registry that a body names and locks it against deletion until the commit. */
export const holdRegistry = (db: Database, scope: Scope, id: string) =>
  db
    .selectFrom('container_registry')
    .selectAll()
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .forKeyShare()
    .executeTakeFirst();

/** Locks the row against other writes until the commit. */
export const lockRegistry = (db: Database, organizationIds: string[], id: string) =>
  db
    .selectFrom('container_registry')
    .select('id')
    .where('organization_id', '=', sql<string>`any(${organizationIds})`)
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst();

export interface RegistryColumns {
  name: string;
  description: string | null;
  kind: string;
  url: string;
  config: object;
  secrets: Buffer | null;
}

const toRow = ({ config, ...columns }: RegistryColumns) => ({ ...columns, config: json(config) });

export const insertRegistry = (
  db: Database,
  registry: RegistryColumns & Pick<Insertable<DB['container_registry']>, 'id' | 'organization_id'>,
) => {
  const { id, organization_id, ...columns } = registry;
  return db
    .insertInto('container_registry')
    .values({ id, organization_id, ...toRow(columns) })
    .execute();
};

export const updateRegistry = (db: Database, scope: Scope, id: string, columns: RegistryColumns) =>
  db
    .updateTable('container_registry')
    .set({ ...toRow(columns), updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();

export const deleteRegistryRow = (db: Database, scope: Scope, id: string) =>
  db
    .deleteFrom('container_registry')
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();
