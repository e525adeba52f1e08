import { sql, type Database } from '#platform/database/index.ts';
import type { Level } from '#platform/access/actions.ts';
import { compilePolicy } from '#platform/access/policy.ts';
import type { Grant, Policy, Principal } from '#platform/access/principal.ts';
import { grantOfRole, ROLE_AS_JSON, type StoredRole } from '#platform/access/roles.ts';
import { isSecret, makeSecretText, parseSecretText } from '#platform/access/secret-text.ts';
import { policyOfPlace } from '#platform/access/token-place.ts';

const PREFIX = 'qd';

/** Returns whether the text has the form of an API token (docs/contributing/rules.md 22), valid or not. */
export const looksLikeApiToken = (text: string): boolean => text.startsWith(`${PREFIX}_`);

/** Makes a new token for an id: the text to show once, and the hash to store. */
export function makeToken(id: string): { token: string; hash: Buffer } {
  const { text, hash } = makeSecretText(PREFIX, id);
  return { token: text, hash };
}

/** Stored part of a token, and its caller. */
export interface KnownToken {
  principal: Principal;
  secretHash: Buffer;
  expiresAt: Date | null;
  /** Access version of the creator, read in the same statement; null before their first membership. */
  accessVersion: string | null;
}

/**
 * Returns the record of a token that `find` knows by its id. Returns undefined for a malformed text, an unknown id, another secret, or a
 * token that has ended.
 */
export function checkToken<T extends KnownToken | undefined>(
  token: string,
  find: (id: string) => T,
  now: Date,
): KnownToken | undefined {
  const parsed = parseSecretText(PREFIX, token);
  const known = parsed && find(parsed.id);
  if (!known || !isSecret(known.secretHash, parsed.secret)) return undefined;
  return known.expiresAt && known.expiresAt <= now ? undefined : known;
}

/**
 * Returns the record of a valid API token, else undefined. Invalid: malformed, unknown, revoked, expired, without its role, or made by a
 * former member.
 */
export async function readToken(db: Database, token: string, now: Date): Promise<KnownToken | undefined> {
  const id = parseSecretText(PREFIX, token)?.id;
  if (!id) return undefined;
  const rows = await findTokenRows(db, id);
  return checkToken(token, () => rows[0] && toKnownToken(rows[0], rows), now);
}

/**
 * Returns the caller that a token makes, with what it may do now; undefined once it is revoked or over. For what was arranged with the token to
 * happen later.
 */
export async function findTokenPrincipal(db: Database, id: string, now: Date): Promise<Principal | undefined> {
  const rows = await findTokenRows(db, id);
  const known = rows[0] && toKnownToken(rows[0], rows);
  return known && (known.expiresAt === null || known.expiresAt > now) ? known.principal : undefined;
}

const toKnownToken = (row: TokenRow, rows: TokenRow[]): KnownToken => ({
  principal: { id: row.id, kind: 'token', userId: row.created_by, name: row.name, grants: rows.map(grantOf) },
  secretHash: row.secret_hash,
  expiresAt: row.expires_at,
  accessVersion: row.access_version,
});

interface TokenRow {
  id: string;
  name: string;
  secret_hash: Buffer;
  scope: Level | null;
  policy: string | null;
  /** Place that the token is limited to. */
  project_id: string | null;
  environment_id: string | null;
  created_by: string;
  expires_at: Date | null;
  organization_id: string;
  /** Role of a token that has one instead of a scope. */
  role: StoredRole | null;
  creator_role: StoredRole;
  access_version: string | null;
}

/** Finds a token, with a row for each organization that it acts in: its own and those that it made, while its creator is a member there. */
const findTokenRows = async (db: Database, id: string): Promise<TokenRow[]> =>
  (
    await sql<TokenRow>`
      select token.id, token.name, token.secret_hash, token.scope, token.policy, token.created_by, token.expires_at,
        token.project_id, token.environment_id,
        member.organization_id,
        case when role.id is not null then ${ROLE_AS_JSON('role')} end as role,
        ${ROLE_AS_JSON('creator_role')} as creator_role,
        (select version from access_version where user_id = token.created_by) as access_version
      from api_token token
      join member on member.user_id = token.created_by
      join role creator_role on creator_role.id = member.role_id
      left join role on role.id = token.role_id
      where token.id = ${id} and (
        member.organization_id = token.organization_id
        or exists (select from api_token_organization made
          where made.token_id = token.id and made.organization_id = member.organization_id))
      order by member.created_at, member.organization_id`.execute(db)
  ).rows;

/** Returns the token's grant in the row's organization: never more than its creator may do there now (docs/contributing/rules.md 23). */
function grantOf(row: TokenRow): Grant {
  const { organization_id: organizationId } = row;
  const own = row.role
    ? grantOfRole(organizationId, row.role)
    : { organizationId, level: row.scope!, roleId: null, custom: null };
  const within = grantOfRole(organizationId, row.creator_role);
  const policies = policiesOf(row);
  return policies.length === 0 ? { ...own, within } : { ...own, within, policy: allOf(policies) };
}

const policiesOf = ({ policy, project_id: projectId, environment_id: environmentId }: TokenRow): Policy[] => [
  ...(policy === null ? [] : [compilePolicy(policy)]),
  ...(projectId === null ? [] : [policyOfPlace({ projectId, environmentId })]),
];

const allOf = (policies: Policy[]): Policy => ({
  allows: (action, at) => policies.every((policy) => policy.allows(action, at)),
});
