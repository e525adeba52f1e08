import type { RolePermissions } from '#platform/access/principal.ts';
import { BUILT_IN_ROLES } from '#platform/access/roles.ts';
import { sql, type Database, type Scope } from '#platform/database/index.ts';
import { json } from '#platform/database/json.ts';

export type RoleRow = NonNullable<Awaited<ReturnType<typeof findRoleById>>>;

/** Roles of an organization: the built-in ones in their order, then the custom ones as they were made. */
export const listRoles = (db: Database, scope: Scope) =>
  db
    .selectFrom('role')
    .selectAll()
    .where('organization_id', '=', scope.organizationId)
    .orderBy('built_in', 'desc')
    .orderBy(sql`case when built_in then array_position(${Object.keys(BUILT_IN_ROLES)}::text[], name) end`)
    .orderBy('created_at')
    .orderBy('id');

export const listCustomRoles = (db: Database, scope: Scope) => listRoles(db, scope).where('built_in', '=', false);

export const findRoleById = (db: Database, organizationIds: string[], id: string) =>
  db
    .selectFrom('role')
    .selectAll()
    .where('organization_id', '=', sql<string>`any(${organizationIds})`)
    .where('id', '=', id)
    .executeTakeFirst();

/** Locks the row against other writes until the commit. */
export const lockRole = (db: Database, organizationIds: string[], id: string) =>
  db
    .selectFrom('role')
    .select('id')
    .where('organization_id', '=', sql<string>`any(${organizationIds})`)
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst();

/** Finds a role that a body names and locks it against deletion until the commit. */
export const holdRole = (db: Database, scope: Scope, id: string) =>
  db
    .selectFrom('role')
    .selectAll()
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .forKeyShare()
    .executeTakeFirst();

export const findBuiltInRole = (db: Database, scope: Scope, name: string) =>
  db
    .selectFrom('role')
    .selectAll()
    .where('organization_id', '=', scope.organizationId)
    .where('built_in', '=', true)
    .where('name', '=', name)
    .executeTakeFirstOrThrow();

export const insertRole = (
  db: Database,
  role: { id: string; organization_id: string; name: string; description: string; permissions: RolePermissions },
) =>
  db
    .insertInto('role')
    .values({ ...role, permissions: json(role.permissions), built_in: false })
    .execute();

export const updateRole = (
  db: Database,
  scope: Scope,
  id: string,
  change: { name: string; description?: string; permissions: RolePermissions },
) =>
  db
    .updateTable('role')
    .set({ ...change, permissions: json(change.permissions), updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .execute();

export const deleteRoleRow = (db: Database, scope: Scope, id: string) =>
  db.deleteFrom('role').where('organization_id', '=', scope.organizationId).where('id', '=', id).execute();

/** Counts the members, tokens and invitations that have a role. */
export const countUses = (db: Database, scope: Scope, id: string) =>
  sql<{ members: number; tokens: number; invitations: number; groups: number }>`select
    (select count(*) from member where organization_id = ${scope.organizationId} and role_id = ${id}) as members,
    (select count(*) from api_token where organization_id = ${scope.organizationId} and role_id = ${id}) as tokens,
    (select count(*) from member_invitation where organization_id = ${scope.organizationId} and role_id = ${id}) as invitations,
    (select count(*) from enterprise_group where organization_id = ${scope.organizationId} and role_id = ${id})
      + (select count(*) from enterprise_connection where organization_id = ${scope.organizationId} and default_role_id = ${id}) as groups`
    .execute(db)
    .then(({ rows }) => rows[0]!);

/** Lists the clusters and projects that a custom role can name. */
export const listPlaces = async (db: Database, scope: Scope) => {
  const named = (table: 'cluster' | 'project') =>
    db
      .selectFrom(table)
      .select(['id', 'name'])
      .where('organization_id', '=', scope.organizationId)
      .orderBy('created_at')
      .orderBy('id')
      .execute();
  return { clusters: await named('cluster'), projects: await named('project') };
};
