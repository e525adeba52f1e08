import { createHash } from 'node:crypto';
import ipaddr from 'ipaddr.js';
import { AppError } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import { sql, type Database } from '#platform/database/index.ts';
import type { Call } from '#platform/http/route.ts';
import { Turns } from '#platform/http/turns.ts';

const WINDOW_MS = 15 * 60_000;

/** Wrong attempts within a window, over all processes. Whoever knows a name cannot keep its owner out from elsewhere with a few of them. */
const LIMITS = {
  /** From one address: several people may share it. */
  address: 50,
  /** With one name from one address. */
  pair: 10,
  /** With one name from anywhere. */
  name: 200,
};

/** Requests for a mail with a link within a window: of one network, and for one address, whose owner gets them. */
const RECOVERIES = { network: 20, email: 4 };

/** Attempts that are looked at together: each takes a processor for the digest of a password. */
const turns = new Turns({
  things: 'attempts to sign in',
  owner: 'your network',
  limit: 4,
  shareOf: () => 2,
  hasOthersThan: () => true,
});

/** Visitor who tries something that a secret protects. */
export interface Visitor {
  userAgent: string | null;
  address: string | undefined;
  signal: AbortSignal;
}

/** Attempt with a passkey: it names no person, so that only its address counts, together with wrong passwords. */
export const PASSKEY = Symbol('passkey');

/** Returns the visitor of a call. */
export const visitorOf = ({ headers, peer, signal }: Pick<Call, 'headers' | 'peer' | 'signal'>): Visitor => ({
  userAgent: headers['user-agent'] === undefined ? null : String(headers['user-agent']),
  address: peer,
  signal,
});

/** Marks an error as that of a wrong guess, which counts, and returns it. */
export type Wrong = <E extends AppError>(error: E) => E;

/**
 * Runs an attempt in its turn: with a password under a name, with a passkey, or with a link (`tried` is null). It counts before anything
 * is looked at, so that parallel ones count together, and is taken back unless it was wrong. Throws 429 once the limits are used up: nothing was tried
 * then. Throws 503 where too many wait.
 */
export async function attempt<T>(
  context: Context,
  { address, signal }: Visitor,
  tried: string | typeof PASSKEY | null,
  work: (wrong: Wrong) => Promise<T>,
): Promise<T> {
  const now = context.clock.now();
  const startedAt = windowOf(now);
  const limits = limitsOf(networkOf(address, 8), tried);
  const end = await turns.take(networkOf(address, 6));
  const counted: string[] = [];
  let isWrong = false;
  try {
    if (signal.aborted) throw new AppError('unavailable', 'You left before it was your turn.');
    for (const [key, limit] of limits) {
      if (!(await countUp(context.db, key, startedAt, limit))) throw tooMany(startedAt, now);
      counted.push(key);
    }
    return await work((error) => {
      isWrong = true;
      return error;
    });
  } finally {
    // Before the next one's turn, which counts too.
    if (!isWrong) await forgive(context, counted, startedAt);
    end();
  }
}

/** Returns the keys of an attempt with their limits, in the order in which they count: an address that is refused uses up no name. */
function limitsOf(network: string, tried: string | typeof PASSKEY | null): [string, number][] {
  if (tried === null) return [[keyOf('link', network), LIMITS.address]];
  const address: [string, number] = [keyOf('address', network), LIMITS.address];
  if (tried === PASSKEY) return [address];
  const person = tried.toLowerCase();
  return [address, [keyOf('pair', `${person} ${network}`), LIMITS.pair], [keyOf('name', person), LIMITS.name]];
}

/** Counts a request for a mail, by the network that asks and by the address. Throws 429 once a limit is used up. */
export async function limitRecoveries({ db, clock }: Context, { address }: Visitor, email: string): Promise<void> {
  const now = clock.now();
  const startedAt = windowOf(now);
  const limits: [string, number][] = [
    [keyOf('recovery from', networkOf(address, 8)), RECOVERIES.network],
    [keyOf('recovery to', email.toLowerCase()), RECOVERIES.email],
  ];
  for (const [key, limit] of limits)
    if (!(await countUp(db, key, startedAt, limit))) throw tooMany(startedAt, now, 'Too many links were asked for');
}

const windowOf = (now: Date): Date => new Date(Math.floor(now.getTime() / WINDOW_MS) * WINDOW_MS);

function tooMany(startedAt: Date, now: Date, what = 'Too many attempts to sign in failed'): AppError {
  const wait = Math.max(1, Math.ceil((startedAt.getTime() + WINDOW_MS - now.getTime()) / 1000));
  return new AppError('rate_limited', `${what}: try again in ${wait} s.`, {
    headers: { 'Retry-After': String(wait) },
  });
}

/** Counts an attempt unless the limit is reached; returns whether it did. A refused one writes nothing. */
async function countUp(db: Database, key: string, startedAt: Date, limit: number): Promise<boolean> {
  const row = await db
    .insertInto('sign_in_attempt')
    .values({ key, started_at: startedAt, used: 1 })
    .onConflict((conflict) =>
      conflict
        .columns(['key', 'started_at'])
        .doUpdateSet({ used: sql`sign_in_attempt.used + 1` })
        .where('sign_in_attempt.used', '<', limit),
    )
    .returning('used')
    .executeTakeFirst();
  return row !== undefined;
}

/** Takes back what was counted, one by one, so that attempts wait for each other in no circle. What happened stands if this fails. */
async function forgive({ db, log }: Context, keys: string[], startedAt: Date): Promise<void> {
  try {
    for (const key of keys)
      await db
        .updateTable('sign_in_attempt')
        .set({ used: sql`greatest(used - 1, 0)` })
        .where('key', '=', key)
        .where('started_at', '=', startedAt)
        .execute();
  } catch (error) {
    log.warn({ err: error }, 'an attempt to sign in that was right could not be taken back');
  }
}

/** A digest, because people type a password where their name belongs. */
const keyOf = (kind: string, text: string): string =>
  createHash('sha256').update(`${kind} ${text}`).digest('base64url').slice(0, 32);

/** Returns the network of an address that one customer of a provider has: the address itself, of IPv6 its first bytes. */
function networkOf(address: string | undefined, bytes: number): string {
  if (address === undefined || !ipaddr.isValid(address)) return 'unknown';
  const parsed = ipaddr.process(address);
  if (parsed.kind() === 'ipv4') return parsed.toString();
  return ipaddr.fromByteArray(parsed.toByteArray().map((byte, at) => (at < bytes ? byte : 0))).toString();
}

/** Removes windows in which nothing is counted any more. */
export const removeOldAttempts = (db: Database, now: Date) =>
  db
    .deleteFrom('sign_in_attempt')
    .where('started_at', '<', new Date(now.getTime() - 2 * WINDOW_MS))
    .execute();
