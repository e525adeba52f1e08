import type { MEMBER_ROLES } from '#resources/member/schema.ts';

/** The reference's names of roles. Custom roles and billing have none of their own there: they read the organization. */
const ROLE_NAMES: Record<string, (typeof MEMBER_ROLES)[number]> = {
  owner: 'OWNER',
  admin: 'ADMIN',
  devops: 'DEVELOPER',
};

export const roleNameOf = (role: { built_in: boolean; role_name: string }): (typeof MEMBER_ROLES)[number] =>
  (role.built_in && ROLE_NAMES[role.role_name]) || 'VIEWER';
