import { endSessions } from '#platform/access/sessions.ts';
import type { Context } from '#platform/context.ts';
import * as queries from '#resources/sign-in/queries.ts';

/** Ends all sessions and the one-time link of a person; returns the number of sessions. Their password stays. */
export async function signOut({ db }: Context, userId: string): Promise<number> {
  await queries.deleteLinkOf(db, userId);
  return endSessions(db, userId, null);
}

/** Removes the password of a person: they sign in again only by another one-time link. */
export async function removePassword({ db }: Context, userId: string): Promise<void> {
  await queries.deleteSignIn(db, userId);
}
