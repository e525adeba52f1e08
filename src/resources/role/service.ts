import { conflict, forbidden, internal, invalidField, notFound } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import { requireGrantable } from '#platform/access/granting.ts';
import type { Principal, RolePermissions } from '#platform/access/principal.ts';
import { grantOfRole } from '#platform/access/roles.ts';
import { visibleClusterIds, visibleProjectIds } from '#platform/access/visibility.ts';
import type { Context } from '#platform/context.ts';
import { takenNames } from '#platform/database/taken-name.ts';
import { audit } from '#platform/events/audit.ts';
import { toPermissions, toPermissionsView, type PermissionsInput, type Places } from '#resources/role/permissions.ts';
import * as queries from '#resources/role/queries.ts';

const refuseTakenName = takenNames('role', 'role of the organization');

export interface RoleInput extends PermissionsInput {
  name: string;
  description?: string;
}

/** A custom role as it is answered. */
export const toRoleView = (row: queries.RoleRow, places: Places) => ({
  id: row.id,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
  name: row.name,
  description: row.description ?? '',
  ...toPermissionsView(row.permissions as RolePermissions, places),
});

/** Returns a custom role with its permissions on the clusters and projects that the caller sees. */
export async function getRole(context: Context, principal: Principal, role: queries.RoleRow) {
  if (role.built_in) throw notFound('Custom role');
  return toRoleView(role, await visiblePlaces(context, principal, role.organization_id));
}

/** Lists the clusters and projects that the caller may see. */
export async function visiblePlaces(context: Context, principal: Principal, organizationId: string): Promise<Places> {
  const { clusters, projects } = await queries.listPlaces(context.db, { organizationId });
  const clusterIds = visibleClusterIds(principal, organizationId, 'cluster.read');
  const projectIds = visibleProjectIds(principal, organizationId, 'project.read');
  return {
    clusters: clusters.filter(({ id }) => clusterIds?.includes(id) ?? true),
    projects: projects.filter(({ id }) => projectIds?.includes(id) ?? true),
  };
}

/** Returns a custom role as events record it: its own entries, without the names of clusters and projects. */
const toRecordedRole = (row: queries.RoleRow) => ({
  id: row.id,
  name: row.name,
  description: row.description ?? '',
  permissions: row.permissions,
});

/** Creates a custom role; 409 if the organization has a role of that name, a built-in one included. */
export async function createRole(context: Context, principal: Principal, organizationId: string, input: RoleInput) {
  const id = newId();
  const name = input.name.trim();
  const places = await queries.listPlaces(context.db, { organizationId });
  const permissions = toPermissions(input, { clusters: [], projects: [] }, places);
  const role = { id, organization_id: organizationId, name, description: input.description ?? '', permissions };
  requireGrantable(principal, grantOfRole(organizationId, { id, name, built_in: false, permissions }));
  await refuseTakenName(name, () => queries.insertRole(context.db, role));
  const made = await findRow(context, organizationId, id);
  await audit(context, { organizationId, type: 'CREATE', target: targetOf(id, name), after: toRecordedRole(made) });
  return toRoleView(made, places);
}

/** Changes a custom role; the change holds at once for members and tokens that have it. */
export async function editRole(context: Context, principal: Principal, role: queries.RoleRow, input: RoleInput) {
  const { organization_id: organizationId, id } = role;
  refuseBuiltIn(role);
  const name = input.name.trim();
  const places = await queries.listPlaces(context.db, { organizationId });
  const permissions = toPermissions(input, role.permissions as RolePermissions, places);
  requireGrantable(principal, grantOfRole(organizationId, { id, name, built_in: false, permissions }));
  const change = { name, permissions, ...(input.description === undefined ? {} : { description: input.description }) };
  await refuseTakenName(name, () => queries.updateRole(context.db, { organizationId }, id, change));
  const changed = await findRow(context, organizationId, id);
  const [before, after] = [role, changed].map(toRecordedRole);
  await audit(context, { organizationId, type: 'UPDATE', target: targetOf(id, name), before, after });
  return toRoleView(changed, places);
}

/** Deletes a custom role; 409 while members, tokens, invitations or groups have it, which would be left without any. */
export async function deleteRole(context: Context, role: queries.RoleRow): Promise<void> {
  const { organization_id: organizationId, id, name } = role;
  refuseBuiltIn(role);
  const uses = await queries.countUses(context.db, { organizationId }, id);
  if (uses.members + uses.tokens + uses.invitations + uses.groups > 0)
    throw conflict(
      `The role ${name} is in use by ${uses.members} members, ${uses.tokens} API tokens, ${uses.invitations} invitations and ${uses.groups} groups of the enterprise connection: give them another role first.`,
    );
  const before = toRecordedRole(role);
  await queries.deleteRoleRow(context.db, { organizationId }, id);
  await audit(context, { organizationId, type: 'DELETE', target: targetOf(id, name), before });
}

/** Returns the role that a body names; 400 if it is another organization's or does not exist (docs/contributing/rules.md 7). */
export async function requireRole(context: Context, organizationId: string, id: string, field = 'role_id') {
  const role = await queries.holdRole(context.db, { organizationId }, id);
  if (!role)
    throw invalidField(
      field,
      'names no role of this organization: GET /organization/{organizationId}/availableRole lists them',
    );
  return role;
}

const targetOf = (id: string, name: string) => ({
  type: 'MEMBERS_AND_ROLES' as const,
  id,
  name,
  sub: 'CUSTOM_ROLE' as const,
});

function refuseBuiltIn(role: queries.RoleRow): void {
  if (role.built_in)
    throw forbidden(`The role ${role.name} is built in and stays as it is: make a custom role for other permissions.`);
}

async function findRow(context: Context, organizationId: string, id: string) {
  const row = await queries.findRoleById(context.db, [organizationId], id);
  if (!row) throw internal(`Role ${id} is gone within its own transaction.`);
  return row;
}
