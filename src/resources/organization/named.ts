import { invalidField } from '#kernel/errors.ts';
import type { Action } from '#platform/access/actions.ts';
import type { Call } from '#platform/http/route.ts';

/** Refuses the organization that a body names: it is gone, or not one of the caller's. */
export const foreignOrganization = (field: string) =>
  invalidField(field, 'must be the id of one of your organizations; GET /organization lists them');

/** Checks that the caller may do the action in the organization that a body names; 400 if it is not theirs, 403 without permission. */
export function requireOrganization(
  call: Pick<Call, 'principal' | 'require'>,
  organizationId: string,
  action: Action,
  field: string,
): void {
  if (!call.principal.grants.some((grant) => grant.organizationId === organizationId)) throw foreignOrganization(field);
  call.require(action, { organizationId });
}
