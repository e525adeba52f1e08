import { DateTime, ListOf, named, OneOf, Type, Uuid } from '#platform/http/schema.ts';

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
  Type.Object({ user_id: Type.String(), role_id: Uuid }),
);

/** Names one member, where the path names none. */
export const MemberReference = named('MemberReference', Type.Object({ user_id: Uuid }));

export const InviteMemberRequest = named(
  'InviteMemberRequest',
  Type.Object({
    email: Email,
    role: Type.Optional(MemberRole),
    role_id: Type.Optional(Uuid),
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
