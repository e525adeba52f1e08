import type { Target } from '#platform/http/route.ts';
import { findProjectById, lockProject, type ProjectRow } from '#resources/project/queries.ts';

export type ProjectTarget = ProjectRow & { organizationId: string; projectId: string };

/** Loads the project of a path. */
export const projectTarget: Target<ProjectTarget> = {
  name: 'Project',
  param: 'projectId',
  find: async (db, id, organizationIds, lock) => {
    if (lock && !(await lockProject(db, organizationIds, id))) return undefined;
    const row = await findProjectById(db, organizationIds, id);
    return row && { ...row, organizationId: row.organization_id, projectId: row.id };
  },
};
