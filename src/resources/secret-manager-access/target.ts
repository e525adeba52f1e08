import type { Target } from '#platform/http/route.ts';
import { findAccessById } from '#resources/secret-manager-access/queries.ts';

type Row = NonNullable<Awaited<ReturnType<typeof findAccessById>>>;
export type SecretManagerAccessTarget = Row & { organizationId: string; clusterId: string };

/** Loads the secret manager access of a path. It stands on a cluster, which makes and changes it. */
export const secretManagerAccessTarget: Target<SecretManagerAccessTarget> = {
  name: 'Secret manager access',
  param: 'secretManagerAccessId',
  find: async (db, id, organizationIds) => {
    const row = await findAccessById(db, organizationIds, id);
    return row && { ...row, organizationId: row.organization_id, clusterId: row.cluster_id };
  },
};
