import { sql, type Database, type Scope } from '#platform/database/index.ts';
import type { StoredRole } from '#platform/access/roles.ts';

export type ConnectionRow = NonNullable<Awaited<ReturnType<typeof findConnection>>>;

/** Finds the connection of an organization; `lock` keeps it from changing until the commit. */
export const findConnection = (db: Database, { organizationId }: Scope, lock = false) =>
  db
    .selectFrom('enterprise_connection')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .$if(lock, (query) => query.forUpdate())
    .executeTakeFirst();

/** Lists the groups of a connection with the roles that they give. */
export const listGroups = (db: Database, { organizationId }: Scope) =>
  db
    .selectFrom('enterprise_group as given')
    .innerJoin('role', 'role.id', 'given.role_id')
    .select(['given.group_name', 'role.id', 'role.name', 'role.built_in', 'role.permissions'])
    .where('given.organization_id', '=', organizationId)
    .orderBy('role.name')
    .orderBy('given.group_name')
    .$castTo<StoredRole & { group_name: string }>()
    .execute();

/** Lists the roles of an organization; `hold` keeps each from being deleted until the commit. */
export const listRoles = (db: Database, { organizationId }: Scope, hold = false) =>
  db
    .selectFrom('role')
    .select(['id', 'name', 'built_in', 'permissions'])
    .where('organization_id', '=', organizationId)
    .orderBy('name')
    .$if(hold, (query) => query.forKeyShare())
    .$castTo<StoredRole>()
    .execute();

export interface NewConnection {
  organization_id: string;
  id: string;
  name: string;
  default_role_id: string | null;
  enforce_group_sync: boolean;
  updated_at: Date;
}

/** Saves the connection of an organization with its groups, in place of an earlier one. */
export async function saveConnection(
  db: Database,
  connection: NewConnection,
  groups: { role_id: string; group_name: string }[],
): Promise<void> {
  const { organization_id, id: _, ...changes } = connection;
  await db
    .insertInto('enterprise_connection')
    .values(connection)
    .onConflict((conflict) => conflict.column('organization_id').doUpdateSet(changes))
    .execute();
  await db.deleteFrom('enterprise_group').where('organization_id', '=', organization_id).execute();
  const rows = groups.map((group) => ({ ...group, organization_id }));
  if (rows.length > 0) await db.insertInto('enterprise_group').values(rows).execute();
}

/**
 * Lists the organizations whose connection has not been applied to a person: by this token, by a later one, or as it is now. Where it is not
 * enforced, it is applied no more once it has made them a member. Runs with every request of a session of the identity provider.
 */
export async function listDue(db: Database, userId: string, tokenAt: Date): Promise<string[]> {
  const { rows } = await sql<{ organization_id: string }>`
    select c.organization_id from enterprise_connection c
    left join enterprise_sign_in s on s.organization_id = c.organization_id and s.user_id = ${userId}
    where s.user_id is null or (c.enforce_group_sync or not s.gave_membership)
      and (s.token_at < ${tokenAt} or s.token_at = ${tokenAt} and s.connection_at <> c.updated_at)`.execute(db);
  return rows.map(({ organization_id }) => organization_id);
}

export const findSignIn = (db: Database, { organizationId }: Scope, userId: string) =>
  db
    .selectFrom('enterprise_sign_in')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('user_id', '=', userId)
    .executeTakeFirst();

export const saveSignIn = (
  db: Database,
  row: {
    organization_id: string;
    user_id: string;
    token_at: Date;
    connection_at: Date;
    gave_membership: boolean;
  },
) => {
  const { organization_id: _organization, user_id: _user, ...changes } = row;
  return db
    .insertInto('enterprise_sign_in')
    .values(row)
    .onConflict((conflict) => conflict.columns(['organization_id', 'user_id']).doUpdateSet(changes))
    .execute();
};
