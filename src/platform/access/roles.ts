import type { Level } from '#platform/access/actions.ts';
import type { Grant, RolePermissions } from '#platform/access/principal.ts';

/** The roles that every organization has, and what they may do (decisions.md 24). */
export const BUILT_IN_ROLES: Record<string, Level> = {
  owner: 'ADMIN',
  admin: 'ADMIN',
  devops: 'WRITE',
  billing: 'READ',
  viewer: 'READ',
};

/** What a role's row grants in its organization. */
export function grantOfRole(
  organizationId: string,
  role: { id: string; name: string; built_in: boolean; permissions: unknown },
): Grant {
  if (role.built_in)
    return { organizationId, level: BUILT_IN_ROLES[role.name] ?? 'READ', roleId: role.id, custom: null };
  return { organizationId, level: 'READ', roleId: role.id, custom: role.permissions as RolePermissions };
}
