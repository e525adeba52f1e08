import type { Target } from '#platform/http/route.ts';
import { findGitTokenById, lockGitToken, type GitTokenRow } from '#resources/git-token/queries.ts';

export type GitTokenTarget = GitTokenRow & { organizationId: string };

/** Loads the git token of a path. */
export const gitTokenTarget: Target<GitTokenTarget> = {
  name: 'Git token',
  param: 'gitTokenId',
  find: async (db, id, organizationIds, { lock }) => {
    if (lock && !(await lockGitToken(db, organizationIds, id))) return undefined;
    const row = await findGitTokenById(db, organizationIds, id);
    return row && { ...row, organizationId: row.organization_id };
  },
};
