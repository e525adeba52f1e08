import type { Platform } from '#platform/context.ts';
import type { Database } from '#platform/database/index.ts';
import { endEverySession, removeOldSessions } from '#platform/access/sessions.ts';
import { removeOldAttempts } from '#resources/sign-in/attempts.ts';
import { deleteEveryLink, removeOldLinks } from '#resources/sign-in/queries.ts';

export { listPeople } from '#resources/sign-in/queries.ts';
export { makeLinkFor, signOut } from '#resources/sign-in/command-line.ts';
export { signInRoutes } from '#resources/sign-in/routes.ts';

/** Removes sessions, links and counts that are over. */
export async function removeOldSignIns({ db, clock }: Pick<Platform, 'db' | 'clock'>): Promise<void> {
  const now = clock.now();
  await removeOldSessions(db, now);
  await removeOldLinks(db, now);
  await removeOldAttempts(db, now);
}

/** Ends every session and every one-time link; passwords stay. After a restore, those that ended since the backup must not be valid again. */
export async function endAllSignIns(db: Database): Promise<void> {
  await endEverySession(db);
  await deleteEveryLink(db);
}
