import type { Target } from '#platform/http/route.ts';
import type { MetadataKind } from '#resources/metadata-group/kinds.ts';
import { findGroup, lockGroup, type GroupRow } from '#resources/metadata-group/queries.ts';

export type GroupTarget = GroupRow & { organizationId: string };

/** Loads the group of a path. */
export const groupTarget = (of: MetadataKind): Target<GroupTarget> => ({
  name: of.name[0]!.toUpperCase() + of.name.slice(1),
  param: of.param,
  find: async (db, id, organizationIds, { lock }) => {
    if (lock && !(await lockGroup(db, organizationIds, id))) return undefined;
    const row = await findGroup(db, organizationIds, of.kind, id);
    return row && { ...row, organizationId: row.organization_id };
  },
});
