import type { Target } from '#platform/http/route.ts';
import { findRegistryById, lockRegistry, type RegistryRow } from '#resources/registry/queries.ts';

export type RegistryTarget = RegistryRow & { organizationId: string };

/** Loads the container registry of a path. */
export const registryTarget: Target<RegistryTarget> = {
  name: 'Container registry',
  param: 'containerRegistryId',
  find: async (db, id, organizationIds, { lock }) => {
    if (lock && !(await lockRegistry(db, organizationIds, id))) return undefined;
    const row = await findRegistryById(db, organizationIds, id);
    return row && { ...row, organizationId: row.organization_id };
  },
};
