import { forbidden } from '#kernel/errors.ts';
import { includes } from '#platform/access/actions.ts';
import { grantIn, levelAt, type Principal } from '#platform/access/principal.ts';
import type { Context } from '#platform/context.ts';
import { findMember } from '#resources/member/queries.ts';

/** Tells whether a role is the owner's. */
export const isOwner = (role: { built_in: boolean; role_name: string }): boolean =>
  role.built_in && role.role_name === 'owner';

/**
 * Throws 403 unless the caller owns the organization: only owners make and unmake owners, for nobody grants more than they
 * hold (docs/contributing/rules.md 23). A token does so for its creator if it may do everything in their place.
 */
export async function requireOwner(context: Context, principal: Principal, organizationId: string): Promise<void> {
  if (!(await mayMakeOwners(context, principal, organizationId)))
    throw forbidden('This requires an owner of the organization.');
}

/** Tells whether the caller owns the organization, by themselves or by a token that may do everything in their place. */
export async function mayMakeOwners(context: Context, principal: Principal, organizationId: string): Promise<boolean> {
  const member = await findMember(context.db, { organizationId }, principal.userId);
  const grant = grantIn(principal, organizationId);
  const whole = grant !== undefined && !grant.policy && includes(levelAt(grant, { organizationId }), 'ADMIN');
  return member !== undefined && isOwner(member) && whole;
}
