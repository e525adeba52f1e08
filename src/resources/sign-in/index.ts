import type { Platform } from '#platform/context.ts';
import { removeOldSessions } from '#platform/access/sessions.ts';
import { removeOldAttempts } from '#resources/sign-in/attempts.ts';
import { removeOldLinks } from '#resources/sign-in/queries.ts';

export { listPeople } from '#resources/sign-in/queries.ts';
export { makeLink } from '#resources/sign-in/links.ts';
export { removePassword, signOut } from '#resources/sign-in/command-line.ts';
export { signInRoutes } from '#resources/sign-in/routes.ts';

/** Removes sessions, links and counts that are over. */
export async function removeOldSignIns({ db, clock }: Pick<Platform, 'db' | 'clock'>): Promise<void> {
  const now = clock.now();
  await removeOldSessions(db, now);
  await removeOldLinks(db, now);
  await removeOldAttempts(db, now);
}
