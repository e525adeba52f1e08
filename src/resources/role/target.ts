import type { Target } from '#platform/http/route.ts';
import { findRoleById, lockRole, type RoleRow } from '#resources/role/queries.ts';

export type RoleTarget = RoleRow & { organizationId: string };

/** Loads the role of a path, a built-in one too, so that changing one is refused by its name. */
export const roleTarget: Target<RoleTarget> = {
  name: 'Custom role',
  param: 'customRoleId',
  find: async (db, id, organizationIds, { lock }) => {
    if (lock && !(await lockRole(db, organizationIds, id))) return undefined;
    const row = await findRoleById(db, organizationIds, id);
    return row && { ...row, organizationId: row.organization_id };
  },
};
