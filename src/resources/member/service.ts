import { conflict, internal, invalidField } from '#kernel/errors.ts';
import { isId } from '#kernel/ids.ts';
import { requireGrantable } from '#platform/access/granting.ts';
import { displayName } from '#platform/access/people.ts';
import type { Principal, RolePermissions } from '#platform/access/principal.ts';
import { grantOfRole } from '#platform/access/roles.ts';
import type { Context } from '#platform/context.ts';
import { audit } from '#platform/events/audit.ts';
import { revokeTokensOf } from '#resources/api-token/index.ts';
import { withdrawInvitationsOf } from '#resources/member/invitations.ts';
import { isOwner, requireOwner } from '#resources/member/owner.ts';
import * as queries from '#resources/member/queries.ts';
import { roleNameOf } from '#resources/member/role-names.ts';
import { findBuiltInRole, requireRole } from '#resources/role/index.ts';

/** A member as it is answered. */
export const toMemberView = (row: queries.MemberRow) => ({
  id: row.user_id,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
  name: displayName(row),
  nickname: row.nickname,
  email: row.email ?? '',
  profile_picture_url: row.picture_url || undefined,
  last_activity_at: row.last_activity_at?.toISOString(),
  role: roleNameOf(row),
  role_name: row.role_name,
  role_id: row.role_id,
});

/** Gives a member another role; it holds from their next request on. 409 if the last owner would be gone. */
export async function changeRole(
  context: Context,
  principal: Principal,
  organizationId: string,
  input: { user_id: string; role_id: string },
) {
  const scope = { organizationId };
  await queries.lockMembership(context.db, scope);
  const member = await requireMember(context, organizationId, input.user_id);
  const role = await requireRole(context, organizationId, input.role_id);
  requireGrantable(
    principal,
    grantOfRole(organizationId, { ...role, permissions: role.permissions as RolePermissions }),
  );
  const becomesOwner = isOwner({ ...role, role_name: role.name });
  if (isOwner(member) || becomesOwner) await requireOwner(context, principal, organizationId);
  if (isOwner(member) && !becomesOwner) await requireAnotherOwner(context, organizationId);
  return setRole(context, member, role.id);
}

/**
 * Removes a member. With them go the tokens that they made and the invitations that they sent: nobody else knows who holds
 * those. 409 for the last owner.
 */
export async function removeMember(context: Context, principal: Principal, organizationId: string, userId: string) {
  const scope = { organizationId };
  await queries.lockMembership(context.db, scope);
  const member = await requireMember(context, organizationId, userId);
  if (isOwner(member)) {
    await requireOwner(context, principal, organizationId);
    await requireAnotherOwner(context, organizationId);
  }
  await remove(context, member);
}

async function remove(context: Context, member: queries.MemberRow): Promise<void> {
  const { organization_id: organizationId, user_id: userId } = member;
  await revokeTokensOf(context, organizationId, userId);
  await withdrawInvitationsOf(context, organizationId, userId);
  await queries.deleteMemberRow(context.db, { organizationId }, userId);
  await audit(context, { organizationId, type: 'DELETE', target: targetOf(member), before: toMemberView(member) });
}

/** Role that the groups of a person give them. */
export interface Placement {
  /** Null for none. */
  roleId: string | null;
  /** True if it replaces the role of a member. */
  replaces: boolean;
  /** True if a member without it is removed. */
  removes: boolean;
}

/**
 * Makes a person a member, gives them another role, or removes them. The last owner stays: nobody else could administer the organization. In a
 * transaction.
 */
export async function placeMember(
  context: Context,
  organizationId: string,
  userId: string,
  { roleId, replaces, removes }: Placement,
): Promise<'joined' | 'changed' | 'removed' | 'unchanged' | 'last owner'> {
  const scope = { organizationId };
  await queries.lockMembership(context.db, scope);
  const member = await queries.findMember(context.db, scope, userId);
  if (!member) return roleId === null ? 'unchanged' : join(context, organizationId, userId, roleId);
  const stays = roleId === null ? !removes : !replaces || roleId === member.role_id;
  if (stays) return 'unchanged';
  if (isOwner(member) && (await isLastOwner(context, organizationId))) return 'last owner';
  if (roleId === null) await remove(context, member);
  else await setRole(context, member, roleId);
  return roleId === null ? 'removed' : 'changed';
}

async function join(context: Context, organizationId: string, userId: string, roleId: string): Promise<'joined'> {
  await queries.insertMember(context.db, { organizationId }, userId, roleId);
  const member = await requireMember(context, organizationId, userId);
  const target = { ...targetOf(member), sub: 'MEMBER_ROLE' as const };
  await audit(context, { organizationId, type: 'CREATE', target, after: toMemberView(member) });
  return 'joined';
}

/** Makes another member the owner; the previous owner becomes an administrator. */
export async function transferOwnership(
  context: Context,
  principal: Principal,
  organizationId: string,
  userId: string,
): Promise<void> {
  const scope = { organizationId };
  await queries.lockMembership(context.db, scope);
  await requireOwner(context, principal, organizationId);
  const heir = await requireMember(context, organizationId, userId);
  if (isOwner(heir)) throw invalidField('user_id', 'is an owner already');
  const present = await requireMember(context, organizationId, principal.userId);
  const [owner, admin] = [
    await findBuiltInRole(context.db, scope, 'owner'),
    await findBuiltInRole(context.db, scope, 'admin'),
  ];
  await queries.updateMemberRole(context.db, scope, heir.user_id, owner.id);
  await queries.updateMemberRole(context.db, scope, present.user_id, admin.id);
  await audit(context, {
    organizationId,
    type: 'UPDATE',
    target: { ...targetOf(heir), sub: 'TRANSFER_OWNERSHIP' },
    before: { owner: present.user_id },
    after: { owner: heir.user_id },
  });
}

async function setRole(context: Context, member: queries.MemberRow, roleId: string) {
  const organizationId = member.organization_id;
  await queries.updateMemberRole(context.db, { organizationId }, member.user_id, roleId);
  const row = await queries.findMember(context.db, { organizationId }, member.user_id);
  if (!row) throw internal(`Member ${member.user_id} is gone within its own transaction.`);
  const target = { ...targetOf(member), sub: 'MEMBER_ROLE' as const };
  const [before, after] = [toMemberView(member), toMemberView(row)];
  await audit(context, { organizationId, type: 'UPDATE', target, before, after });
  return after;
}

async function requireMember(context: Context, organizationId: string, userId: string): Promise<queries.MemberRow> {
  const member = isId(userId) ? await queries.findMember(context.db, { organizationId }, userId) : undefined;
  if (!member) throw invalidField('user_id', 'names no member of this organization');
  return member;
}

async function requireAnotherOwner(context: Context, organizationId: string): Promise<void> {
  if (await isLastOwner(context, organizationId))
    throw conflict('The organization needs an owner: transfer the ownership first.');
}

async function isLastOwner(context: Context, organizationId: string): Promise<boolean> {
  const { owners } = await queries.countOwners(context.db, { organizationId });
  return owners < 2;
}

const targetOf = (member: queries.MemberRow) => ({
  type: 'MEMBERS_AND_ROLES' as const,
  id: member.user_id,
  name: displayName(member),
});
