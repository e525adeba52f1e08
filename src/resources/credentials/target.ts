import type { Target } from '#platform/http/route.ts';
import {
  findCredentialsById,
  lockCredentials,
  type CloudProvider,
  type CredentialsRow,
} from '#resources/credentials/queries.ts';

export type CredentialsTarget = CredentialsRow & { organizationId: string };

/** Loads the credentials of a path; those of another provider are not found there. */
export const credentialsTarget = (provider: CloudProvider): Target<CredentialsTarget> => ({
  name: 'Credentials',
  param: 'credentialsId',
  find: async (db, id, organizationIds, { lock }) => {
    if (lock && !(await lockCredentials(db, organizationIds, id))) return undefined;
    const row = await findCredentialsById(db, organizationIds, id);
    return row?.cloud_provider === provider ? { ...row, organizationId: row.organization_id } : undefined;
  },
});
