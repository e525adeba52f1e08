import { createHash } from 'node:crypto';
import ipaddr from 'ipaddr.js';
import { AppError } from '#kernel/errors.ts';
import { sql, type Database } from '#platform/database/index.ts';

const WINDOW_MS = 15 * 60_000;

/** Failed attempts within a window, over all processes. Whoever knows a name cannot keep its owner out from elsewhere with a few of them. */
const LIMITS = {
  /** With one name from one address. */
  pair: 10,
  /** From one address: several people may share it. */
  address: 50,
  /** With one name from anywhere. */
  name: 200,
};

/** Attempt that was counted before it is known whether it is right. */
export interface Attempt {
  keys: string[];
  startedAt: Date;
}

/** Counts an attempt to sign in. Throws 429 once the limits of the window are used up: nothing was tried then. */
export const countAttempt = (db: Database, now: Date, address: string | undefined, name: string): Promise<Attempt> => {
  const from = networkOf(address);
  const person = name.toLowerCase();
  return count(db, now, [
    ['pair', `${person} ${from}`],
    ['address', from],
    ['name', person],
  ]);
};

/** Counts an attempt to use a one-time link. */
export const countLinkAttempt = (db: Database, now: Date, address: string | undefined): Promise<Attempt> =>
  count(db, now, [['address', `link ${networkOf(address)}`]]);

/** Takes back an attempt that was right: only wrong ones use up the limits. */
export const forgiveAttempt = (db: Database, { keys, startedAt }: Attempt) =>
  db
    .updateTable('sign_in_attempt')
    .set({ used: sql`greatest(used - 1, 0)` })
    .where('key', 'in', keys)
    .where('started_at', '=', startedAt)
    .execute();

async function count(db: Database, now: Date, counted: [keyof typeof LIMITS, string][]): Promise<Attempt> {
  const startedAt = new Date(Math.floor(now.getTime() / WINDOW_MS) * WINDOW_MS);
  const limits = new Map(counted.map(([kind, text]) => [keyOf(kind, text), LIMITS[kind]]));
  // In one order, so that attempts of several people do not wait for each other in a circle.
  const keys = [...limits.keys()].sort();
  const rows = await db
    .insertInto('sign_in_attempt')
    .values(keys.map((key) => ({ key, started_at: startedAt, used: 1 })))
    .onConflict((conflict) =>
      conflict.columns(['key', 'started_at']).doUpdateSet({ used: sql`least(sign_in_attempt.used + 1, 1000000)` }),
    )
    .returning(['key', 'used'])
    .execute();
  if (rows.every(({ key, used }) => used <= limits.get(key)!)) return { keys, startedAt };
  const wait = Math.max(1, Math.ceil((startedAt.getTime() + WINDOW_MS - now.getTime()) / 1000));
  throw new AppError('rate_limited', `Too many attempts to sign in failed: try again in ${wait} s.`, {
    headers: { 'Retry-After': String(wait) },
  });
}

/** A digest, because people type a password where their name belongs. */
const keyOf = (kind: string, text: string): string =>
  createHash('sha256').update(`${kind} ${text}`).digest('base64url').slice(0, 32);

/** Returns the network of an address that one customer of a provider has: the address itself, of IPv6 its /64. */
function networkOf(address: string | undefined): string {
  if (address === undefined || !ipaddr.isValid(address)) return 'unknown';
  const parsed = ipaddr.process(address);
  if (parsed.kind() === 'ipv4') return parsed.toString();
  return ipaddr.fromByteArray([...parsed.toByteArray().slice(0, 8), 0, 0, 0, 0, 0, 0, 0, 0]).toString();
}

/** Removes windows in which nothing is counted any more. */
export const removeOldAttempts = (db: Database, now: Date) =>
  db
    .deleteFrom('sign_in_attempt')
    .where('started_at', '<', new Date(now.getTime() - 2 * WINDOW_MS))
    .execute();
