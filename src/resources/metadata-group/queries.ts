import { kindsWith } from '#kernel/kinds.ts';
import type { Principal } from '#platform/access/principal.ts';
import { visibleClusters, visibleEnvironments } from '#platform/access/visibility.ts';
import { sql, type Database, type Scope } from '#platform/database/index.ts';
import { json } from '#platform/database/json.ts';
import type { Entry } from '#resources/metadata-group/rules.ts';

export type GroupKind = 'LABELS' | 'ANNOTATIONS';

/** Ids of the groups that a service names; written as the index `service_metadata_group` has it. */
const SERVICE_GROUPS = sql`(coalesce(service.spec -> 'labels_groups', '[]'::jsonb) || coalesce(service.spec -> 'annotations_groups', '[]'::jsonb))`;

const namedByService = (id: unknown) => sql<boolean>`${SERVICE_GROUPS} ? ${id}::text`;
const namedByCluster = (id: unknown) =>
  sql<boolean>`cluster.spec -> 'labels_groups' @> jsonb_build_array(jsonb_build_object('id', ${id}::text))`;

const ID = sql`metadata_group.id`;
const USES = sql<number>`(select count(*) from service where service.organization_id = metadata_group.organization_id and ${namedByService(ID)})
  + (select count(*) from cluster where cluster.organization_id = metadata_group.organization_id and ${namedByCluster(ID)})`;

export interface GroupRow {
  id: string;
  organization_id: string;
  kind: string;
  name: string;
  entries: Entry[];
  scopes: string[];
  created_at: Date;
  updated_at: Date;
}

/** Groups of a kind in creation order, with the number of services and clusters that name each. */
export const listGroups = (db: Database, scope: Scope, kind: GroupKind) =>
  db
    .selectFrom('metadata_group')
    .selectAll()
    .select(USES.as('uses'))
    .where('organization_id', '=', scope.organizationId)
    .where('kind', '=', kind)
    .orderBy('created_at')
    .orderBy('id');

export const findGroup = (
  db: Database,
  organizationIds: string[],
  kind: GroupKind,
  id: string,
): Promise<GroupRow | undefined> =>
  db
    .selectFrom('metadata_group')
    .selectAll()
    .where('organization_id', '=', sql<string>`any(${organizationIds})`)
    .where('kind', '=', kind)
    .where('id', '=', id)
    .executeTakeFirst();

/** Locks the row until the commit, against other writes and against records that would name it. */
export const lockGroup = (db: Database, organizationIds: string[], id: string) =>
  db
    .selectFrom('metadata_group')
    .select('id')
    .where('organization_id', '=', sql<string>`any(${organizationIds})`)
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst();

/**
 * Returns those of the ids that are groups of the kind, locked against deletion until the commit. A deletion that waits then sees the
 * records that name them.
 */
export const holdGroups = async (db: Database, scope: Scope, kind: GroupKind, ids: string[]): Promise<string[]> => {
  const rows = await db
    .selectFrom('metadata_group')
    .select('id')
    .where('organization_id', '=', scope.organizationId)
    .where('kind', '=', kind)
    .where('id', '=', sql<string>`any(${ids})`)
    .orderBy('id')
    .forShare()
    .execute();
  return rows.map((row) => row.id);
};

export interface GroupColumns {
  name: string;
  entries: Entry[];
  scopes: string[];
}

export const insertGroup = (
  db: Database,
  { entries, ...group }: GroupColumns & { id: string; organization_id: string; kind: GroupKind },
) =>
  db
    .insertInto('metadata_group')
    .values({ ...group, entries: json(entries) })
    .execute();

export const updateGroup = (db: Database, scope: Scope, id: string, { entries, ...change }: GroupColumns) =>
  db
    .updateTable('metadata_group')
    .set({ ...change, entries: json(entries), updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();

export const deleteGroupRow = (db: Database, scope: Scope, id: string) =>
  db.deleteFrom('metadata_group').where('organization_id', '=', scope.organizationId).where('id', '=', id).execute();

/** Raises the versions of the services that name a group: they show OUT_OF_DATE without an edit of their own. */
export const touchServicesNaming = (db: Database, scope: Scope, id: string) =>
  db
    .updateTable('service')
    .set({ version: sql`version + 1` })
    .where('organization_id', '=', scope.organizationId)
    .where(namedByService(id))
    .execute();

/** Raises the versions of the clusters that name a group: they show OUT_OF_DATE without an edit of their own. */
export const touchClustersNaming = (db: Database, scope: Scope, id: string) =>
  db
    .updateTable('cluster')
    .set({ version: sql`version + 1` })
    .where('organization_id', '=', scope.organizationId)
    .where(namedByCluster(id))
    .execute();

export const countUses = async (db: Database, scope: Scope, id: string): Promise<number> => {
  const row = await db
    .selectFrom('metadata_group')
    .select(USES.as('uses'))
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .executeTakeFirst();
  return row?.uses ?? 0;
};

export interface ItemRow {
  item_id: string;
  item_name: string;
  item_type: string;
  cluster_id: string;
  cluster_name: string;
  project_id: string | null;
  project_name: string | null;
  environment_id: string | null;
  environment_name: string | null;
}

/** Lists the clusters, then the services, that name a group and that the caller may see, in creation order. */
export const listItems = (db: Database, principal: Principal, scope: Scope, id: string) => {
  const services = db
    .selectFrom('service')
    .innerJoin('environment', 'environment.id', 'service.environment_id')
    .innerJoin('project', 'project.id', 'environment.project_id')
    .innerJoin('cluster', 'cluster.id', 'environment.cluster_id')
    .select(['service.id as item_id', 'service.name as item_name', ITEM_TYPE.as('item_type'), sql`1`.as('rank')])
    .select(['service.created_at', 'cluster.id as cluster_id', 'cluster.name as cluster_name'])
    .select(['project.id as project_id', 'project.name as project_name'])
    .select(['environment.id as environment_id', 'environment.name as environment_name'])
    .where('service.organization_id', '=', scope.organizationId)
    .where(namedByService(id))
    .where(visibleEnvironments(principal, scope.organizationId, 'service.read'));
  const none = sql<null>`null`;
  const clusters = db
    .selectFrom('cluster')
    .select(['id as item_id', 'name as item_name', sql<string>`'CLUSTER'`.as('item_type'), sql`0`.as('rank')])
    .select(['created_at', 'id as cluster_id', 'name as cluster_name'])
    .select([none.as('project_id'), none.as('project_name'), none.as('environment_id'), none.as('environment_name')])
    .where('organization_id', '=', scope.organizationId)
    .where(visibleClusters(principal, scope.organizationId))
    .where(namedByCluster(id));
  const both = sql<ItemRow & { rank: number; created_at: Date }>`(${clusters} union all ${services})`;
  return db.selectFrom(both.as('item')).selectAll().orderBy('rank').orderBy('created_at').orderBy('item_id');
};

/** A job is a CRON or a LIFECYCLE one by its schedule. */
const ITEM_TYPE = sql<string>`case when service.kind <> all(${kindsWith('scheduled')}) then service.kind
  when service.spec -> 'schedule' -> 'cronjob' is not null then 'CRON' else 'LIFECYCLE' end`;

/** Group as `SERVICE_METADATA` answers it, with times as text. */
export interface NamedGroup extends Omit<GroupRow, 'organization_id' | 'created_at' | 'updated_at'> {
  created_at: string;
  updated_at: string;
}

/** Column for queries over `service`: the groups that each service names, with their content. Saves a query per service. */
export const SERVICE_METADATA = sql<NamedGroup[] | null>`(select jsonb_agg(jsonb_build_object('id', metadata_group.id,
  'kind', metadata_group.kind, 'name', metadata_group.name, 'entries', metadata_group.entries, 'scopes', metadata_group.scopes,
  'created_at', metadata_group.created_at, 'updated_at', metadata_group.updated_at)) from metadata_group
  where metadata_group.organization_id = service.organization_id
  and metadata_group.id = any(array(select jsonb_array_elements_text(${SERVICE_GROUPS})::uuid)))`;
