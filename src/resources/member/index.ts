export { isOwner, requireOwner } from '#resources/member/owner.ts';
export { placeMember } from '#resources/member/service.ts';
export { memberRoutes } from '#resources/member/routes.ts';
export {
  acceptBySecret,
  findInvitationBySecret,
  INVITATION_MAIL,
  toInvitationView,
  writeInvitation,
} from '#resources/member/invitations.ts';
export { InviteMember } from '#resources/member/schema.ts';
export { forgetInvitationSecretsOf } from '#resources/member/queries.ts';
