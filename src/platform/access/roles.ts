import type { Level } from '#platform/access/actions.ts';
import type { Grant, RolePermissions } from '#platform/access/principal.ts';
import { sql } from '#platform/database/index.ts';

/** Roles that every organization has, with their levels (docs/contributing/rules.md 24). */
export const BUILT_IN_ROLES: Record<string, Level> = {
  owner: 'ADMIN',
  admin: 'ADMIN',
  devops: 'WRITE',
  billing: 'READ',
  viewer: 'READ',
};

/** Row of a role, as far as it grants something. */
export interface StoredRole {
  id: string;
  name: string;
  built_in: boolean;
  permissions: RolePermissions;
}

/** Returns a role's row as one column of a query: `table` is its name or alias there. */
export const ROLE_AS_JSON = (table: 'role' | 'creator_role') => {
  const at = sql.table(table);
  return sql<StoredRole>`json_build_object('id', ${at}.id, 'name', ${at}.name, 'built_in', ${at}.built_in, 'permissions', ${at}.permissions)`;
};

/** Returns the rights that a role grants in its organization. */
export function grantOfRole(organizationId: string, role: StoredRole): Grant {
  if (role.built_in)
    return { organizationId, level: BUILT_IN_ROLES[role.name] ?? 'READ', roleId: role.id, custom: null };
  return { organizationId, level: 'READ', roleId: role.id, custom: role.permissions };
}
