import { internal, invalidField, unauthenticated } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import { LEVELS, type Level } from '#platform/access/actions.ts';
import { compilePolicy, PolicyError } from '#platform/access/policy.ts';
import type { Grant, RolePermissions } from '#platform/access/principal.ts';
import { BUILT_IN_ROLES, grantOfRole } from '#platform/access/roles.ts';
import { makeToken } from '#platform/access/tokens.ts';
import type { Context } from '#platform/context.ts';
import { takenNames } from '#platform/database/taken-name.ts';
import { audit } from '#platform/events/audit.ts';
import { requireRole } from '#resources/role/index.ts';
import * as queries from '#resources/api-token/queries.ts';

const refuseTakenName = takenNames('api_token', 'token of the organization');

export interface TokenInput {
  name: string;
  description?: string;
  /** ADMIN, WRITE, DEPLOY or READ in any case; or else `role_id`. */
  scope?: string | null;
  role_id?: string | null;
  opa_policy?: string;
  /** Project that the token is limited to, or the environment. */
  project_id?: string | null;
  environment_id?: string | null;
  expires_at?: string | null;
}

/** Built-in role that clients show for a scope; no role only deploys, so DEPLOY has none. */
const ROLE_OF_SCOPE: Record<string, string> = { ADMIN: 'admin', WRITE: 'devops', READ: 'viewer' };

/** Returns a token as it is answered: never its secret, which is not even stored (docs/contributing/rules.md 22). */
export function toTokenView(row: queries.ApiTokenRow, builtInRoles: Map<string, string>) {
  const scopeRole = row.scope ? ROLE_OF_SCOPE[row.scope] : undefined;
  return {
    id: row.id,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
    name: row.name,
    description: row.description ?? '',
    role_name: row.role_name ?? scopeRole ?? row.scope!.toLowerCase(),
    role_id: row.role_id ?? (scopeRole && builtInRoles.get(scopeRole)),
    scope: row.scope ?? undefined,
    creator_name: row.creator_name,
    expires_at: row.expires_at?.toISOString() ?? null,
    ...(row.policy === null ? {} : { opa_policy: row.policy as string }),
    ...(row.project_id === null ? {} : { project_id: row.project_id }),
    ...(row.environment_id === null ? {} : { environment_id: row.environment_id }),
  };
}

/**
 * Makes a token of an organization for its creator. `mayGrant` throws when the caller holds less than they would give. A token that is made
 * with another one, `parentId`, ends and is revoked with it.
 * The text of the token is answered here and never again. 409 if the name is taken.
 */
export async function createToken(
  context: Context,
  organizationId: string,
  { creatorId, parentId }: { creatorId: string; parentId: string | null },
  input: TokenInput,
  mayGrant: (grant: Grant) => void,
) {
  const grant = await grantOf(context, organizationId, input);
  mayGrant(grant);
  const id = newId();
  const name = input.name.trim();
  const { token, hash } = makeToken(id);
  const row: queries.NewToken = {
    id,
    organization_id: organizationId,
    name,
    description: input.description ?? '',
    scope: grant.roleId ? null : grant.level,
    role_id: grant.roleId,
    policy: input.opa_policy ?? null,
    ...(await placeOf(context, organizationId, input)),
    secret_hash: hash,
    created_by: creatorId,
    expires_at: await expiryOf(context, input.expires_at, parentId),
    parent_id: parentId,
  };
  await refuseTakenName(name, () => queries.insertToken(context.db, row));
  const made = await queries.findTokenById(context.db, [organizationId], id);
  if (!made) throw internal(`Token ${id} is gone within its own transaction.`);
  const view = toTokenView(made, await queries.findBuiltInRoleIds(context.db, { organizationId }));
  await audit(context, { organizationId, type: 'CREATE', target: targetOf(made), after: view });
  return { ...view, token, user_sub: made.creator_subject?.split('|').pop() ?? made.created_by };
}

/** Revokes a token with those that were made with it: their next request is refused. */
export async function revokeToken(context: Context, token: queries.ApiTokenRow): Promise<void> {
  const organizationId = token.organization_id;
  for (const child of await queries.listTokensByParent(context.db, token.id)) await revokeToken(context, child);
  const before = toTokenView(token, await queries.findBuiltInRoleIds(context.db, { organizationId }));
  await queries.deleteTokenRow(context.db, { organizationId }, token.id);
  await audit(context, { organizationId, type: 'DELETE', target: targetOf(token), before });
}

/** Revokes the tokens that a person who leaves the organization created in it: the organization does not know who holds them. */
export async function revokeTokensOf(context: Context, organizationId: string, userId: string): Promise<void> {
  for (const token of await queries.listTokensByCreator(context.db, { organizationId }, userId))
    // A token that was made with another token is revoked with it.
    if (await queries.findTokenEnd(context.db, token.id)) await revokeToken(context, token);
}

/** Returns the grant that the input asks for: a scope, a role, or with a policy alone everything, which the policy narrows. */
async function grantOf(context: Context, organizationId: string, input: TokenInput): Promise<Grant> {
  if (input.opa_policy !== undefined) checkPolicy(input.opa_policy);
  const scope = input.scope == null ? undefined : scopeOf(input.scope);
  if (input.role_id == null) {
    const level = scope ?? (input.opa_policy === undefined ? undefined : 'ADMIN');
    if (!level) throw invalidField('role_id', 'is required, or else a scope: ADMIN, WRITE, DEPLOY or READ');
    return { organizationId, level, roleId: null, custom: null };
  }
  const role = await requireRole(context, organizationId, input.role_id);
  if (scope && !(role.built_in && BUILT_IN_ROLES[role.name] === scope))
    throw invalidField('scope', `says something else than the role ${role.name}: give one of the two`);
  return grantOfRole(organizationId, { ...role, permissions: role.permissions as RolePermissions });
}

/** Returns the place that a token is limited to. 400 for one that the organization does not have. */
async function placeOf({ db }: Context, organizationId: string, input: TokenInput) {
  const { project_id: projectId = null, environment_id: environmentId = null } = input;
  const scope = { organizationId };
  if (environmentId === null) {
    if (projectId !== null && !(await queries.findProjectOf(db, scope, { projectId })))
      throw invalidField('project_id', 'must be a project of the organization');
    return { project_id: projectId, environment_id: null };
  }
  const found = await queries.findProjectOf(db, scope, { environmentId });
  if (!found) throw invalidField('environment_id', 'must be an environment of the organization');
  if (projectId !== null && projectId !== found.project_id)
    throw invalidField('environment_id', 'is of another project than project_id: leave project_id out');
  return { project_id: found.project_id, environment_id: environmentId };
}

function scopeOf(text: string): Level {
  const scope = LEVELS.find((level) => level !== 'NONE' && level === text.toUpperCase());
  if (!scope) throw invalidField('scope', 'must be one of ADMIN, WRITE, DEPLOY, READ');
  return scope;
}

function checkPolicy(text: string): void {
  try {
    compilePolicy(text);
  } catch (error) {
    if (error instanceof PolicyError) throw invalidField('opa_policy', error.message);
    throw error;
  }
}

/** Returns the end of the token that another one is made with; 401 if it was revoked after the request came. */
async function endOfParent({ db }: Context, id: string): Promise<Date | null> {
  const parent = await queries.holdToken(db, id);
  if (!parent) throw unauthenticated();
  return parent.expires_at;
}

async function expiryOf(
  context: Context,
  text: string | null | undefined,
  parentId: string | null,
): Promise<Date | null> {
  const end = parentId === null ? null : await endOfParent(context, parentId);
  if (text == null) return end;
  const at = new Date(text);
  if (!(at > context.clock.now())) throw invalidField('expires_at', 'must lie in the future');
  if (end && at > end)
    throw invalidField(
      'expires_at',
      `must not be after ${end.toISOString()}, when the token ends that this one is made with`,
    );
  return at;
}

const targetOf = (token: queries.ApiTokenRow) => ({
  type: 'ORGANIZATION' as const,
  id: token.id,
  name: token.name,
  sub: token.policy === null ? ('API_TOKEN' as const) : ('POLICY_API_TOKEN' as const),
});
