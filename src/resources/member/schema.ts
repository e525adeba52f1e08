import { DateTime, ListOf, named, Nullable, OneOf, Type, Uuid } from '#platform/http/schema.ts';
import { RoleId } from '#resources/role/index.ts';

export const MEMBER_ROLES = ['ADMIN', 'DEVELOPER', 'OWNER', 'VIEWER'] as const;
const MemberRole = OneOf(MEMBER_ROLES);
const Email = Type.String({ format: 'email', maxLength: 320 });

export const Member = named(
  'Member',
  Type.Object({
    id: Uuid,
    created_at: DateTime,
    updated_at: DateTime,
    name: Type.String(),
    nickname: Type.String(),
    email: Type.String({ description: 'Empty for whom no identity provider has vouched, as the first administrator.' }),
    profile_picture_url: Type.Optional(Type.String()),
    last_activity_at: Type.Optional(DateTime),
    role: MemberRole,
    role_name: Type.String(),
    role_id: Uuid,
  }),
);
export const MemberList = ListOf(Member);

export const MemberRoleUpdateRequest = named(
  'MemberRoleUpdateRequest',
  Type.Object({ user_id: Type.String(), role_id: RoleId }),
);

/** Names one member, where the path names none. */
export const MemberReference = named('MemberReference', Type.Object({ user_id: Uuid }));

export const InviteMemberRequest = named(
  'InviteMemberRequest',
  Type.Object({
    email: Email,
    role: Type.Optional(MemberRole),
    role_id: Type.Optional(RoleId),
  }),
);

export const InviteMember = named(
  'InviteMember',
  Type.Object({
    id: Uuid,
    created_at: DateTime,
    updated_at: DateTime,
    email: Type.String(),
    role: MemberRole,
    role_id: Uuid,
    role_name: Type.String(),
    invitation_link: Type.String(),
    invitation_status: OneOf(['EXPIRED', 'PENDING']),
    organization_name: Type.String(),
    inviter: Type.String(),
    logo_url: Type.Optional(Type.String()),
    expires_at: DateTime,
  }),
);
export const InviteMemberList = ListOf(InviteMember);

export const InvitationGuide = named(
  'InvitationGuide',
  Type.Object({
    message: Type.String({ description: 'How the invitation is accepted, for people.' }),
    sign_in_at: Nullable(Type.String({ description: 'Identity provider of the installation, null without one.' })),
    accept_with: Type.String({ description: 'Method and path of the operation that accepts it.' }),
  }),
);
