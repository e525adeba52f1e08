import type { Level } from '#platform/access/actions.ts';
import { sql, type Database, type Scope } from '#platform/database/index.ts';
import { json } from '#platform/database/json.ts';

const CREATOR_NAME = sql<string>`coalesce(nullif(trim(creator.first_name || ' ' || creator.last_name), ''), nullif(creator.nickname, ''), creator.email)`;

const selectTokens = (db: Database) =>
  db
    .selectFrom('api_token')
    .innerJoin('user_account as creator', 'creator.id', 'api_token.created_by')
    .leftJoin('role', 'role.id', 'api_token.role_id')
    .select(['api_token.id', 'api_token.organization_id', 'api_token.name', 'api_token.description'])
    .select(['api_token.scope', 'api_token.role_id', 'api_token.policy', 'api_token.expires_at'])
    .select(['api_token.project_id', 'api_token.environment_id'])
    .select(['api_token.created_at', 'api_token.updated_at', 'api_token.created_by'])
    .select(['role.name as role_name', 'creator.subject as creator_subject', CREATOR_NAME.as('creator_name')]);

export type ApiTokenRow = NonNullable<Awaited<ReturnType<typeof findTokenById>>>;

/** Kind of token: tokens with a policy have a list of their own. */
export type TokenKind = 'plain' | 'policy';

export interface TokenFilter {
  name?: string;
  creatorName?: string;
}

/** Tokens of an organization in creation order. */
export const listTokens = (db: Database, scope: Scope, kind: TokenKind, filter: TokenFilter = {}) =>
  selectTokens(db)
    .where('api_token.organization_id', '=', scope.organizationId)
    .where('api_token.policy', kind === 'policy' ? 'is not' : 'is', null)
    .$if(filter.name !== undefined, (query) =>
      query.where(sql<boolean>`position(lower(${filter.name}) in lower(api_token.name)) > 0`),
    )
    .$if(filter.creatorName !== undefined, (query) =>
      query.where(sql<boolean>`position(lower(${filter.creatorName}) in lower(${CREATOR_NAME})) > 0`),
    )
    .orderBy('api_token.created_at')
    .orderBy('api_token.id');

export const findTokenById = (db: Database, organizationIds: string[], id: string) =>
  selectTokens(db)
    .where('api_token.organization_id', '=', sql<string>`any(${organizationIds})`)
    .where('api_token.id', '=', id)
    .executeTakeFirst();

/** Locks the row against other writes until the commit. */
export const lockToken = (db: Database, organizationIds: string[], id: string) =>
  db
    .selectFrom('api_token')
    .select('id')
    .where('organization_id', '=', sql<string>`any(${organizationIds})`)
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst();

export interface NewToken {
  id: string;
  organization_id: string;
  name: string;
  description: string;
  scope: Level | null;
  role_id: string | null;
  policy: string | null;
  project_id: string | null;
  environment_id: string | null;
  secret_hash: Buffer;
  created_by: string;
  expires_at: Date | null;
  /** The token that it was made with. */
  parent_id: string | null;
}

export const insertToken = (db: Database, { policy, ...token }: NewToken) =>
  db
    .insertInto('api_token')
    .values({ ...token, policy: policy === null ? null : json(policy) })
    .execute();

/** Finds a project by its id, or by that of an environment in it. */
export const findProjectOf = (
  db: Database,
  { organizationId }: Scope,
  of: { projectId: string } | { environmentId: string },
) =>
  'projectId' in of
    ? db
        .selectFrom('project')
        .select('id as project_id')
        .where('organization_id', '=', organizationId)
        .where('id', '=', of.projectId)
        .executeTakeFirst()
    : db
        .selectFrom('environment')
        .select('project_id')
        .where('organization_id', '=', organizationId)
        .where('id', '=', of.environmentId)
        .executeTakeFirst();

export const deleteTokenRow = (db: Database, scope: Scope, id: string) =>
  db.deleteFrom('api_token').where('organization_id', '=', scope.organizationId).where('id', '=', id).execute();

/** Tokens that a person made in an organization. */
export const listTokensByCreator = (db: Database, scope: Scope, userId: string) =>
  selectTokens(db)
    .where('api_token.organization_id', '=', scope.organizationId)
    .where('api_token.created_by', '=', userId)
    .execute();

/** Tokens that were made with a token, in its organization and in those that it founded. */
export const listTokensByParent = (db: Database, parentId: string) =>
  selectTokens(db).where('api_token.parent_id', '=', parentId).execute();

/** Finds the end of a token, whichever of the caller's organizations it belongs to. */
export const findTokenEnd = (db: Database, id: string) =>
  db.selectFrom('api_token').select('expires_at').where('id', '=', id).executeTakeFirst();

/** Finds the end of a token and locks it against revocation until the commit; undefined once it is revoked. */
export const holdToken = (db: Database, id: string) =>
  db.selectFrom('api_token').select('expires_at').where('id', '=', id).forKeyShare().executeTakeFirst();

/** Finds the ids of the built-in roles by name: a scope is shown as one of them where a role is expected. */
export const findBuiltInRoleIds = async (db: Database, scope: Scope): Promise<Map<string, string>> => {
  const rows = await db
    .selectFrom('role')
    .select(['id', 'name'])
    .where('organization_id', '=', scope.organizationId)
    .where('built_in', '=', true)
    .execute();
  return new Map(rows.map((row) => [row.name, row.id]));
};

/** Returns the organization's first owner, for whom tokens of the command line act. */
export const findFirstOwner = (db: Database, scope: Scope) =>
  db
    .selectFrom('member')
    .innerJoin('role', 'role.id', 'member.role_id')
    .select('member.user_id')
    .where('member.organization_id', '=', scope.organizationId)
    .where('role.built_in', '=', true)
    .where('role.name', '=', 'owner')
    .orderBy('member.created_at')
    .orderBy('member.user_id')
    .executeTakeFirst();
