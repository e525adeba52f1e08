import { fetchPage } from '#platform/http/paging.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { PageQuery, Type, Uuid } from '#platform/http/schema.ts';
import { organizationTarget } from '#resources/organization/index.ts';
import { accept, getInvitation, guideOf, invite, toInvitationView, withdraw } from '#resources/member/invitations.ts';
import { listInvitations, listMembers } from '#resources/member/queries.ts';
import * as schema from '#resources/member/schema.ts';
import { changeRole, removeMember, toMemberView, transferOwnership } from '#resources/member/service.ts';
import { invitationTarget } from '#resources/member/target.ts';

const TAG = 'Members';

const members: Route[] = [
  defineRoute({
    id: 'getOrganizationMembers',
    method: 'GET',
    path: '/organization/{organizationId}/member',
    tag: TAG,
    summary: 'List the members of an organization',
    description: 'Answers each member with role and last activity, which is written down at most every 5 minutes.',
    target: organizationTarget,
    action: 'member.read',
    query: PageQuery,
    answer: { status: 200, body: schema.MemberList },
    handler: ({ db, target, query }) => fetchPage(db, listMembers(db, target), query, toMemberView),
  }),
  defineRoute({
    id: 'editOrganizationMemberRole',
    method: 'PUT',
    path: '/organization/{organizationId}/member',
    tag: TAG,
    summary: 'Give a member another role',
    description: 'It holds from the next request on, for the tokens of the member too.',
    target: organizationTarget,
    action: 'member.edit',
    body: schema.MemberRoleUpdateRequest,
    refusesUnknownFields: true,
    answer: { status: 200, body: schema.Member },
    errors: [409],
    handler: (call) => changeRole(call, call.principal, call.target.organizationId, call.body),
  }),
  defineRoute({
    id: 'deleteMember',
    method: 'DELETE',
    path: '/organization/{organizationId}/member',
    tag: TAG,
    summary: 'Remove a member',
    description:
      'It holds from the next request on. The API tokens that they made and the invitations that they sent end.',
    target: organizationTarget,
    action: 'member.edit',
    body: schema.MemberReference,
    refusesUnknownFields: true,
    answer: { status: 204, body: null },
    errors: [409],
    handler: (call) => removeMember(call, call.principal, call.target.organizationId, call.body.user_id),
  }),
  defineRoute({
    id: 'postOrganizationTransferOwnership',
    method: 'POST',
    path: '/organization/{organizationId}/transferOwnership',
    tag: TAG,
    summary: 'Make another member the owner',
    description: 'The member of the body becomes the owner; the present owner becomes an administrator.',
    target: organizationTarget,
    action: 'member.edit',
    body: schema.MemberReference,
    refusesUnknownFields: true,
    answer: { status: 204, body: null },
    handler: (call) => transferOwnership(call, call.principal, call.target.organizationId, call.body.user_id),
  }),
];

const invitations: Route[] = [
  defineRoute({
    id: 'getOrganizationInvitedMembers',
    method: 'GET',
    path: '/organization/{organizationId}/inviteMember',
    tag: TAG,
    summary: 'List the invitations of an organization',
    description: 'Answers the invitations that nobody has accepted yet, with the address and role of each.',
    target: organizationTarget,
    action: 'member.read',
    query: PageQuery,
    answer: { status: 200, body: schema.InviteMemberList },
    handler: (call) =>
      fetchPage(call.db, listInvitations(call.db, call.target), call.query, (row) => toInvitationView(call, row)),
  }),
  defineRoute({
    id: 'postInviteMember',
    method: 'POST',
    path: '/organization/{organizationId}/inviteMember',
    tag: TAG,
    summary: 'Invite somebody by e-mail address',
    description:
      'Hand them the link, which is shown only now. Where the installation sends mail (QUARTERDECK_SMTP_URL), they get a link of their own. Who opens it chooses a name and a password there, or joins with the account that they have. Sent with an API token, its link lets in only who has that verified address at the identity provider. Without a role they become a viewer.',
    target: organizationTarget,
    action: 'member.edit',
    body: schema.InviteMemberRequest,
    refusesUnknownFields: true,
    answer: { status: 201, body: schema.InviteMember },
    errors: [409],
    handler: (call) => invite(call, call.principal, call.target.organizationId, call.body),
  }),
  defineRoute({
    id: 'getMemberInvitation',
    method: 'GET',
    path: '/organization/{organizationId}/inviteMember/{inviteId}',
    tag: TAG,
    summary: 'Get an invitation',
    description: 'For members of the organization and for whom it is meant.',
    action: 'authenticated',
    answer: { status: 200, body: schema.InviteMember },
    handler: (call) => getInvitation(call, call.principal, call.params.organizationId, call.params.inviteId),
  }),
  defineRoute({
    id: 'postAcceptInviteMember',
    method: 'POST',
    path: '/organization/{organizationId}/inviteMember/{inviteId}',
    tag: TAG,
    summary: 'Accept an invitation',
    description: 'Only in a session of the person whose verified address was invited.',
    action: 'authenticated',
    answer: { status: 201, body: schema.InviteMember },
    errors: [403, 409],
    handler: (call) => accept(call, call.principal, call.params.organizationId, call.params.inviteId),
  }),
  defineRoute({
    id: 'getInvitationGuide',
    method: 'GET',
    path: '/accept-invitation',
    tag: TAG,
    summary: 'Say how an invitation is accepted',
    description: 'The link of an invitation leads here. Nothing is accepted by it.',
    action: 'public',
    query: Type.Object({ organization: Type.Optional(Uuid), inviteToken: Type.Optional(Uuid) }),
    answer: { status: 200, body: schema.InvitationGuide },
    readsOnlyTarget: true,
    handler: (call) => guideOf(call, call.query),
  }),
  defineRoute({
    id: 'deleteInviteMember',
    method: 'DELETE',
    path: '/organization/{organizationId}/inviteMember/{inviteId}',
    tag: TAG,
    summary: 'Withdraw an invitation',
    description:
      'Removes the invitation: accepting it is 404 from then on. Its link goes on explaining how invitations are accepted.',
    target: invitationTarget,
    action: 'member.edit',
    answer: { status: 204, body: null },
    handler: (call) => withdraw(call, call.target),
  }),
];

export const memberRoutes: Route[] = [...members, ...invitations];
