import { ACTIVITY_MS, principalOf, USER_COLUMNS, type UserRow } from '#platform/access/people.ts';
import type { Principal } from '#platform/access/principal.ts';
import { isSecret, makeSecretText, parseSecretText } from '#platform/access/secret-text.ts';
import type { Context, Platform } from '#platform/context.ts';
import { takesPasswords } from '#platform/access/takes-passwords.ts';
import { sql, type Database } from '#platform/database/index.ts';
import { newId } from '#kernel/ids.ts';

const PREFIX = 'qs';
const DAY_MS = 24 * 3600_000;
/** Milliseconds without a request after which a session is over. */
const IDLE_MS = 7 * DAY_MS;
/** Sessions that a person may have; the oldest end for a new one. */
const MOST = 20;
/** Characters of a user agent that are kept. */
const AGENT_LENGTH = 200;

/** Returns whether the text has the form of a session of this installation, valid or not. */
export const looksLikeSession = (text: string): boolean => text.startsWith(`${PREFIX}_`);

type SessionOfUser = UserRow & { session_id: string; secret_hash: Buffer; session_used_at: Date };

/**
 * Returns the person behind a session, with what they may do now: read anew with every request, so that an ended session and another role hold
 * at once. Undefined for a session that is over, and where the installation takes no passwords.
 */
export async function findSessionHere(platform: Platform, text: string): Promise<Principal | undefined> {
  const parts = parseSecretText(PREFIX, text);
  if (!parts || !takesPasswords(platform.settings)) return undefined;
  const now = platform.clock.now();
  const row = await findSession(platform.db, parts.id, now);
  if (!row || !isSecret(row.secret_hash, parts.secret)) return undefined;
  if (now.getTime() - row.session_used_at.getTime() > ACTIVITY_MS) await noteUse(platform.db, row, now);
  return { ...principalOf(row), sessionId: row.session_id };
}

const findSession = async (db: Database, id: string, now: Date): Promise<SessionOfUser | undefined> =>
  (
    await sql<SessionOfUser>`
      select session.id as session_id, session.secret_hash, session.last_used_at as session_used_at, ${USER_COLUMNS}
      from sign_in_session session
      join user_account account on account.id = session.user_id
      where session.id = ${id} and session.expires_at > ${now} and session.last_used_at > ${idleSince(now)}`.execute(db)
  ).rows[0];

const idleSince = (now: Date): Date => new Date(now.getTime() - IDLE_MS);

async function noteUse(db: Database, row: SessionOfUser, now: Date): Promise<void> {
  await db.updateTable('sign_in_session').set({ last_used_at: now }).where('id', '=', row.session_id).execute();
  await db.updateTable('user_account').set({ last_activity_at: now }).where('id', '=', row.id).execute();
}

/** Device that signs in, as its owner will recognize it in the list of sessions. */
export interface Device {
  userAgent: string | null;
  address: string | null;
}

/** Begins a session of a person. Its text is returned once; only a digest is stored. The oldest of too many sessions end. */
export async function beginSession(
  context: Context,
  userId: string,
  device: Device,
): Promise<{ id: string; token: string; expiresAt: Date }> {
  const { db, clock, settings } = context;
  const id = newId();
  const { text, hash } = makeSecretText(PREFIX, id);
  const now = clock.now();
  const expiresAt = new Date(now.getTime() + settings.sessionDays * DAY_MS);
  await db
    .insertInto('sign_in_session')
    .values({
      id,
      user_id: userId,
      secret_hash: hash,
      user_agent: device.userAgent?.slice(0, AGENT_LENGTH) ?? null,
      address: device.address,
      created_at: now,
      last_used_at: now,
      expires_at: expiresAt,
    })
    .execute();
  const kept = listSessions(db, userId, now).clearSelect().select('id').limit(MOST);
  await db.deleteFrom('sign_in_session').where('user_id', '=', userId).where('id', 'not in', kept).execute();
  return { id, token: text, expiresAt };
}

/** Lists the sessions of a person that are not over, the newest first. */
export const listSessions = (db: Database, userId: string, now: Date) =>
  db
    .selectFrom('sign_in_session')
    .select(['id', 'user_agent', 'address', 'created_at', 'last_used_at', 'expires_at'])
    .where('user_id', '=', userId)
    .where('expires_at', '>', now)
    .where('last_used_at', '>', idleSince(now))
    .orderBy('created_at', 'desc')
    .orderBy('id');

/** Ends a session of a person; returns the address that signed in, undefined if there was no such session. */
export const endSession = (db: Database, userId: string, id: string) =>
  db
    .deleteFrom('sign_in_session')
    .where('user_id', '=', userId)
    .where('id', '=', id)
    .returning('address')
    .executeTakeFirst();

/** Ends the sessions of a person, except one; returns their number. */
export async function endSessions(db: Database, userId: string, except: string | null): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('sign_in_session')
    .where('user_id', '=', userId)
    .$if(except !== null, (query) => query.where('id', '!=', except!))
    .executeTakeFirst();
  return Number(numDeletedRows);
}

/** Ends the sessions of everybody. */
export const endEverySession = (db: Database) => db.deleteFrom('sign_in_session').execute();

/** Removes sessions that are over. */
export const removeOldSessions = (db: Database, now: Date) =>
  db
    .deleteFrom('sign_in_session')
    .where((where) => where.or([where('expires_at', '<=', now), where('last_used_at', '<=', idleSince(now))]))
    .execute();
