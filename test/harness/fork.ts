import type { Database } from '#platform/database/index.ts';

/** Commit that is approved in a marked environment. */
const APPROVED = 'a'.repeat(40);

/** Marks an environment as one that runs the code of a fork. */
export const markAsFork = (db: Database, id: string) =>
  db
    .updateTable('environment')
    .set({ fork_ref: 'refs/pull/7/head', fork_commit: APPROVED })
    .where('id', '=', id)
    .execute();
