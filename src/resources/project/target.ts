import type { Target } from '#platform/http/route.ts';
import { findProjectById, lockProject, type ProjectRow } from '#resources/project/queries.ts';

export type ProjectTarget = ProjectRow & { organizationId: string; projectId: string };

/** Loads the project of a path. */
export const projectTarget: Target<ProjectTarget> = {
  name: 'Project',
  param: 'projectId',
  tellsAccess: true,
  find: async (db, id, organizationIds, { lock, userId }) => {
    if (lock && !(await lockProject(db, organizationIds, id))) return undefined;
    const row = await findProjectById(db, organizationIds, id, userId);
    return row && { ...row, organizationId: row.organization_id, projectId: row.id };
  },
};
