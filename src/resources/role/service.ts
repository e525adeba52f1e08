import { conflict, forbidden, internal, invalidField, notFound } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import { requireGrantable } from '#platform/access/granting.ts';
import type { Principal, RolePermissions } from '#platform/access/principal.ts';
import { grantOfRole } from '#platform/access/roles.ts';
import type { Context } from '#platform/context.ts';
import { brokenConstraint } from '#platform/database/index.ts';
import { audit } from '#platform/events/audit.ts';
import { toPermissions, toPermissionsView, type PermissionsInput, type Places } from '#resources/role/permissions.ts';
import * as queries from '#resources/role/queries.ts';

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

export async function getRole(context: Context, role: queries.RoleRow) {
  if (role.built_in) throw notFound('Custom role');
  return toRoleView(role, await queries.listPlaces(context.db, { organizationId: role.organization_id }));
}

/** Makes a custom role. 409 if the organization has a role of that name, a built-in one included. */
export async function createRole(context: Context, principal: Principal, organizationId: string, input: RoleInput) {
  const id = newId();
  const name = input.name.trim();
  const places = await queries.listPlaces(context.db, { organizationId });
  const permissions = toPermissions(input, { clusters: [], projects: [] }, places);
  const role = { id, organization_id: organizationId, name, description: input.description ?? '', permissions };
  requireGrantable(principal, grantOfRole(organizationId, { id, name, built_in: false, permissions }));
  await refuseTakenName(name, () => queries.insertRole(context.db, role));
  const view = toRoleView(await findRow(context, organizationId, id), places);
  await audit(context, { organizationId, type: 'CREATE', target: targetOf(id, name), after: view });
  return view;
}

/** Changes a custom role; members and tokens that have it may do at once what it says now. */
export async function editRole(context: Context, principal: Principal, role: queries.RoleRow, input: RoleInput) {
  const { organization_id: organizationId, id } = role;
  refuseBuiltIn(role);
  const name = input.name.trim();
  const places = await queries.listPlaces(context.db, { organizationId });
  const permissions = toPermissions(input, role.permissions as RolePermissions, places);
  requireGrantable(principal, grantOfRole(organizationId, { id, name, built_in: false, permissions }));
  const change = { name, permissions, ...(input.description === undefined ? {} : { description: input.description }) };
  await refuseTakenName(name, () => queries.updateRole(context.db, { organizationId }, id, change));
  const view = toRoleView(await findRow(context, organizationId, id), places);
  const before = toRoleView(role, places);
  await audit(context, { organizationId, type: 'UPDATE', target: targetOf(id, name), before, after: view });
  return view;
}

/** Deletes a custom role that nobody has. 409 otherwise: they would be left without any. */
export async function deleteRole(context: Context, role: queries.RoleRow): Promise<void> {
  const { organization_id: organizationId, id, name } = role;
  refuseBuiltIn(role);
  const uses = await queries.countUses(context.db, { organizationId }, id);
  if (uses.members + uses.tokens + uses.invitations > 0)
    throw conflict(
      `The role ${name} is in use by ${uses.members} members, ${uses.tokens} API tokens and ${uses.invitations} invitations: give them another role first.`,
    );
  const before = await getRole(context, role);
  await queries.deleteRoleRow(context.db, { organizationId }, id);
  await audit(context, { organizationId, type: 'DELETE', target: targetOf(id, name), before });
}

/** The role that a body names. 400 for one of another organization, as for one that is nowhere (decisions.md 7). */
export async function requireRole(context: Context, organizationId: string, id: string, field = 'role_id') {
  const role = await queries.holdRole(context.db, { organizationId }, id);
  if (!role) throw invalidField(field, 'names no role of this organization: availableRole lists them');
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

async function refuseTakenName(name: string, write: () => Promise<unknown>): Promise<void> {
  try {
    await write();
  } catch (error) {
    if (brokenConstraint(error) === 'role_name')
      throw conflict(`The name "${name}" is taken by another role of the organization: choose another.`);
    throw error;
  }
}
