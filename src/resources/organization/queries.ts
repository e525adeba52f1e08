import { sql, type Database, type Scope } from '#platform/database/index.ts';
import { json } from '#platform/database/json.ts';

const OWNER = sql<string | null>`(select member.user_id from member join role on role.id = member.role_id
  where member.organization_id = organization.id and role.built_in and role.name = 'owner'
  order by member.created_at, member.user_id limit 1)`;

const selectOrganizations = (db: Database) => db.selectFrom('organization').selectAll().select(OWNER.as('owner'));

export type OrganizationRow = NonNullable<Awaited<ReturnType<typeof findOrganizationById>>>;

/** Organizations of a caller in creation order. */
export const listOrganizations = (db: Database, ids: string[]) =>
  selectOrganizations(db)
    .where('id', '=', sql<string>`any(${ids})`)
    .orderBy('created_at')
    .orderBy('id');

export const findOrganizationById = (db: Database, id: string) =>
  selectOrganizations(db).where('id', '=', id).executeTakeFirst();

/** Locks the organization until the commit: its limited resources are counted by one writer at a time. Undefined if it is gone. */
export const lockOrganization = (db: Database, scope: Scope) =>
  db.selectFrom('organization').select('id').where('id', '=', scope.organizationId).forNoKeyUpdate().executeTakeFirst();

export interface OrganizationColumns {
  name: string;
  description?: string | null;
  plan?: string;
  website_url?: string | null;
  repository?: string | null;
  logo_url?: string | null;
  icon_url?: string | null;
  admin_emails?: string[] | null;
}

export const updateOrganization = (db: Database, id: string, { admin_emails, ...change }: OrganizationColumns) =>
  db
    .updateTable('organization')
    .set({
      ...change,
      ...(admin_emails === undefined ? {} : { admin_emails: admin_emails && json(admin_emails) }),
      updated_at: sql`now()`,
    })
    .where('id', '=', id)
    .execute();

export const deleteOrganizationRow = (db: Database, id: string) =>
  db.deleteFrom('organization').where('id', '=', id).execute();

export const countClusters = (db: Database, id: string) =>
  db
    .selectFrom('cluster')
    .select(sql<number>`count(*)`.as('clusters'))
    .where('organization_id', '=', id)
    .executeTakeFirstOrThrow();

/** Tells whether a person is the first administrator. Only people whom the first start creates have no subject. */
export const isFirstAdministrator = async (db: Database, userId: string): Promise<boolean> => {
  const row = await db.selectFrom('user_account').select('subject').where('id', '=', userId).executeTakeFirst();
  return row?.subject === null;
};

/** Lets a token act in an organization that it made. */
export const admitToken = (db: Database, tokenId: string, organizationId: string) =>
  db.insertInto('api_token_organization').values({ token_id: tokenId, organization_id: organizationId }).execute();
