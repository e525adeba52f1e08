import type { Target } from '#platform/http/route.ts';
import { findInvitation, lockInvitation, type InvitationRow } from '#resources/member/queries.ts';

export type InvitationTarget = InvitationRow & { organizationId: string };

/** Loads the invitation of a path, for members of its organization. */
export const invitationTarget: Target<InvitationTarget> = {
  name: 'Invitation',
  param: 'inviteId',
  find: async (db, id, [organizationId], { lock }) => {
    if (!organizationId) return undefined;
    if (lock && !(await lockInvitation(db, { organizationId }, id))) return undefined;
    const row = await findInvitation(db, { organizationId }, id);
    return row && { ...row, organizationId };
  },
};
