import type { Target } from '#platform/http/route.ts';
import { findEnvironmentById, lockEnvironment, type EnvironmentRow } from '#resources/environment/queries.ts';

export type EnvironmentTarget = EnvironmentRow & {
  organizationId: string;
  projectId: string;
  environmentId: string;
  clusterId: string;
};

/** Loads the environment of a path. In writes its row is locked. */
export const environmentTarget: Target<EnvironmentTarget> = {
  name: 'Environment',
  param: 'environmentId',
  tellsAccess: true,
  find: async (db, id, organizationIds, { lock, userId }) => {
    if (lock && !(await lockEnvironment(db, organizationIds, id))) return undefined;
    const row = await findEnvironmentById(db, organizationIds, id, userId);
    return (
      row && {
        ...row,
        organizationId: row.organization_id,
        projectId: row.project_id,
        environmentId: row.id,
        clusterId: row.cluster_id,
      }
    );
  },
};
