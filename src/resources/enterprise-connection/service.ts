import { AppError, conflict, invalidField, notFound } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import { requireGrantable } from '#platform/access/granting.ts';
import type { Principal } from '#platform/access/principal.ts';
import { grantOfRole, type StoredRole } from '#platform/access/roles.ts';
import type { Context } from '#platform/context.ts';
import { audit } from '#platform/events/audit.ts';
import { isFirstOrganization } from '#platform/installation/index.ts';
import * as queries from '#resources/enterprise-connection/queries.ts';
import type { ConnectionInput } from '#resources/enterprise-connection/schema.ts';
import { isOwner, requireOwner } from '#resources/member/index.ts';

/** Returns whether the groups of the identity provider are read for an organization. */
export async function readsGroups({ db, settings }: Pick<Context, 'db' | 'settings'>, organizationId: string) {
  const { oidcIssuer, oidcGroupsClaim, oidcGroupsOrganizations: organizations } = settings;
  if (oidcIssuer === '' || oidcGroupsClaim === '') return false;
  if (organizations.includes('*') || organizations.includes(organizationId)) return true;
  return organizations.includes('first') && (await isFirstOrganization(db, organizationId));
}

/** Throws 404 where the groups are not read: a mapping that is stored and never applied would look like protection. */
async function requireGroups(context: Context, organizationId: string): Promise<void> {
  if (await readsGroups(context, organizationId)) return;
  throw new AppError(
    'not_found',
    'Enterprise connection not found. Groups of the identity provider (QUARTERDECK_OIDC_ISSUER) are read for the organizations of QUARTERDECK_OIDC_GROUPS_ORGANIZATIONS, from the claim of QUARTERDECK_OIDC_GROUPS_CLAIM: ask whoever operates this installation, or invite members and give them roles.',
  );
}

/** Lists the connection of an organization, if it has one. */
export async function listConnections(context: Context, organizationId: string): Promise<ConnectionInput[]> {
  if (!(await readsGroups(context, organizationId))) return [];
  const row = await queries.findConnection(context.db, { organizationId });
  return row ? [await toView(context, row)] : [];
}

/** Returns the connection of that name; 404 if there is none. */
export async function getConnection(context: Context, organizationId: string, name: string): Promise<ConnectionInput> {
  await requireGroups(context, organizationId);
  const row = await queries.findConnection(context.db, { organizationId });
  if (row?.name !== name) throw notFound('Enterprise connection');
  return toView(context, row);
}

/**
 * Saves the connection of an organization, which outlives who saves it, as custom roles do. Throws 400 for a role that is unknown, 403 for one that the caller may not give, 409 for another name
 * than that of the present one.
 */
export async function saveConnection(
  context: Context,
  principal: Principal,
  organizationId: string,
  name: string,
  input: ConnectionInput,
): Promise<ConnectionInput> {
  await requireGroups(context, organizationId);
  const scope = { organizationId };
  if (input.connection_name !== name)
    throw invalidField('connection_name', `must be ${name}, as in the path: a connection keeps its name`);
  const present = await queries.findConnection(context.db, scope, true);
  if (present && present.name !== name)
    throw conflict(
      `The organization has the connection ${present.name} already: the installation has one identity provider.`,
    );
  const roles = await queries.listRoles(context.db, scope, true);
  const groups = groupsOf(roles, input.group_mappings);
  const fallback = input.default_role === '' ? null : requireRole(roles, input.default_role, 'default_role');
  await requireMayGive(context, principal, organizationId, [...groups.keys(), ...(fallback ? [fallback] : [])]);
  const before = present && (await toView(context, present));
  const id = present?.id ?? newId();
  const rows = [...groups].flatMap(([role, names]) => names.map((group_name) => ({ role_id: role.id, group_name })));
  await queries.saveConnection(
    context.db,
    {
      organization_id: organizationId,
      id,
      name,
      default_role_id: fallback?.id ?? null,
      enforce_group_sync: input.enforce_group_sync,
      updated_at: context.clock.now(),
    },
    rows,
  );
  const after = await getConnection(context, organizationId, name);
  const target = { type: 'ENTERPRISE_CONNECTION' as const, id, name };
  await audit(context, {
    organizationId,
    type: before ? 'UPDATE' : 'CREATE',
    target,
    ...(before && { before }),
    after,
  });
  return after;
}

async function requireMayGive(
  context: Context,
  principal: Principal,
  organizationId: string,
  roles: StoredRole[],
): Promise<void> {
  for (const role of roles) requireGrantable(principal, grantOfRole(organizationId, role));
  if (roles.some((role) => isOwner({ ...role, role_name: role.name })))
    await requireOwner(context, principal, organizationId);
}

/** Returns the groups by role. Throws 400 for a role that is unknown or named twice, and for a group without a name. */
function groupsOf(roles: StoredRole[], mappings: Record<string, string[]>): Map<StoredRole, string[]> {
  const groups = new Map<StoredRole, string[]>();
  for (const [named, names] of Object.entries(mappings)) {
    const field = `group_mappings.${named}`;
    const role = requireRole(roles, named, field);
    if (groups.has(role))
      throw invalidField(field, `names the role ${role.name} a second time: give one list of groups`);
    if (names.some((name) => name.trim() === ''))
      throw invalidField(field, 'must hold names of groups, none of them empty');
    groups.set(role, [...new Set(names)]);
  }
  return groups;
}

/** Returns the role with an id or a name, in upper or lower case. */
function requireRole(roles: StoredRole[], named: string, field: string): StoredRole {
  const text = named.trim().toLowerCase();
  const role = roles.find(({ id }) => id === text) ?? roles.find(({ name }) => name.toLowerCase() === text);
  if (!role)
    throw invalidField(
      field,
      'names no role of this organization: roles are named by name or id, as GET /organization/{organizationId}/availableRole lists them, and group_mappings holds the groups of each',
    );
  return role;
}

/** A connection as it is answered: roles by their present names. */
async function toView({ db }: Context, row: queries.ConnectionRow): Promise<ConnectionInput> {
  const scope = { organizationId: row.organization_id };
  const mappings: Record<string, string[]> = {};
  for (const { name, group_name } of await queries.listGroups(db, scope)) (mappings[name] ??= []).push(group_name);
  const roles = await queries.listRoles(db, scope);
  return {
    connection_name: row.name,
    default_role: roles.find(({ id }) => id === row.default_role_id)?.name ?? '',
    enforce_group_sync: row.enforce_group_sync,
    group_mappings: mappings,
  };
}
