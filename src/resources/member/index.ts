export { memberRoutes } from '#resources/member/routes.ts';
export { acceptBySecret, findInvitationBySecret, toInvitationView } from '#resources/member/invitations.ts';
export { InviteMember } from '#resources/member/schema.ts';
export { forgetInvitationSecretsOf } from '#resources/member/queries.ts';
