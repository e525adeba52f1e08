import type { Target } from '#platform/http/route.ts';
import { findTokenById, lockToken, type ApiTokenRow, type TokenKind } from '#resources/api-token/queries.ts';

export type ApiTokenTarget = ApiTokenRow & { organizationId: string };

const targetOf = (kind: TokenKind, name: string, param: string): Target<ApiTokenTarget> => ({
  name,
  param,
  find: async (db, id, organizationIds, { lock }) => {
    if (lock && !(await lockToken(db, organizationIds, id))) return undefined;
    const row = await findTokenById(db, organizationIds, id);
    if (!row || (row.policy === null) !== (kind === 'plain')) return undefined;
    return { ...row, organizationId: row.organization_id };
  },
});

/** Loads the token of a path. */
export const apiTokenTarget = targetOf('plain', 'API token', 'apiTokenId');
export const policyApiTokenTarget = targetOf('policy', 'Policy API token', 'policyApiTokenId');
