import { newId } from '#kernel/ids.ts';
import { makeToken } from '#platform/access/tokens.ts';
import { BUILT_IN_ROLES } from '#platform/access/roles.ts';
import type { Context } from '#platform/context.ts';
import type { Database } from '#platform/database/index.ts';
import { audit } from '#platform/events/audit.ts';
import { recordOrganization } from '#platform/installation/index.ts';

/** Creates an organization with its built-in roles and its owner. The name must be free (`organization_name`). */
export async function makeOrganization(context: Context, name: string, ownerId: string): Promise<string> {
  const id = newId();
  const { db } = context;
  await db
    .insertInto('organization')
    .values({ id, name, data_key: context.vault.newDataKey(id) })
    .execute();
  await recordOrganization(db, id);
  const roles = Object.keys(BUILT_IN_ROLES).map((role) => ({
    id: newId(),
    organization_id: id,
    built_in: true,
    name: role,
  }));
  await db.insertInto('role').values(roles).execute();
  const owner = roles.find((role) => role.name === 'owner')!;
  await db.insertInto('member').values({ organization_id: id, user_id: ownerId, role_id: owner.id }).execute();
  await audit(context, {
    organizationId: id,
    type: 'CREATE',
    target: { type: 'ORGANIZATION', id, name },
    after: { id, name },
  });
  return id;
}

/** Creates a person who has no account at an identity provider: the first administrator. */
export async function makeAdministrator(context: Context): Promise<string> {
  const id = newId();
  await context.db
    .insertInto('user_account')
    .values({ id, nickname: 'administrator', first_name: 'First', last_name: 'Administrator' })
    .execute();
  return id;
}

/** Creates an API token of full access; its text is answered now and never again (docs/contributing/rules.md 22). */
export async function makeAdministratorToken(
  context: Context,
  organizationId: string,
  userId: string,
  name: string,
): Promise<string> {
  const id = newId();
  const { token, hash } = makeToken(id);
  await context.db
    .insertInto('api_token')
    .values({ id, organization_id: organizationId, name, scope: 'ADMIN', secret_hash: hash, created_by: userId })
    .execute();
  await audit(context, {
    organizationId,
    type: 'CREATE',
    target: { type: 'ORGANIZATION', id, name, sub: 'API_TOKEN' },
    after: { id, name, scope: 'ADMIN' },
  });
  return token;
}

/** Tells whether the organization with the id exists, or any organization if no id is given. */
export async function hasOrganization(db: Database, id?: string): Promise<boolean> {
  const found = db.selectFrom('organization').select('id').limit(1);
  return (await (id === undefined ? found : found.where('id', '=', id)).executeTakeFirst()) !== undefined;
}
