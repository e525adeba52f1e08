import type { Target } from '#platform/http/route.ts';
import { findStageById, lockEnvironment, type StageRow } from '#resources/deployment-stage/queries.ts';

export type StageTarget = StageRow & { organizationId: string; projectId: string; environmentId: string };

/** Loads the stage of a path. In writes its environment is locked: stages are ordered together. */
export const stageTarget: Target<StageTarget> = {
  name: 'Stage',
  param: 'deploymentStageId',
  find: async (db, id, organizationIds, { lock }) => {
    const row = await findStageById(db, organizationIds, id);
    if (!row) return undefined;
    if (lock) await lockEnvironment(db, organizationIds, row.environment_id);
    const now = lock ? await findStageById(db, organizationIds, id) : row;
    return (
      now && {
        ...now,
        organizationId: now.organization_id,
        projectId: now.project_id,
        environmentId: now.environment_id,
      }
    );
  },
};
