import type { Target } from '#platform/http/route.ts';
import {
  findHelmRepositoryById,
  lockHelmRepository,
  type HelmRepositoryRow,
} from '#resources/helm-repository/queries.ts';

export type HelmRepositoryTarget = HelmRepositoryRow & { organizationId: string };

/** Loads the Helm repository of a path. */
export const helmRepositoryTarget: Target<HelmRepositoryTarget> = {
  name: 'Helm repository',
  param: 'helmRepositoryId',
  find: async (db, id, organizationIds, { lock }) => {
    if (lock && !(await lockHelmRepository(db, organizationIds, id))) return undefined;
    const row = await findHelmRepositoryById(db, organizationIds, id);
    return row && { ...row, organizationId: row.organization_id };
  },
};
