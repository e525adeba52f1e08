import { sql, type Database, type Transaction } from '#platform/database/index.ts';
import type { ClaimRequest } from '#platform/work/index.ts';
import type { Busy } from '#delivery/receivers/fair-share.ts';

/** Calls that fail one after the other, and the pause of their receiver. */
export interface Breaker {
  /** Failures in a row after which a receiver is left alone. */
  failures: number;
  /** Milliseconds of the first pause; each failure behind it doubles it, up to the longest. */
  pauseMs: number;
  longestPauseMs: number;
}

export const BREAKER: Breaker = { failures: 10, pauseMs: 5_000, longestPauseMs: 300_000 };

/** Call that is due, locked until the commit. */
interface DueCall {
  /** Failed calls of its receiver, one after the other. */
  failures: number;
}

/** Locks at most so many calls that are due, but none of busy receivers and organizations. */
type LockDue<T> = (db: Transaction, limit: number, busy: Busy) => Promise<T[]>;

/** Makes the statements of a breaker on a table of receivers with the columns `failures` and `paused_until`. */
export function breakerOn(name: 'webhook' | 'alert_receiver') {
  const table = sql.table(name);

  async function listPaused(db: Database): Promise<string[]> {
    const { rows } = await sql<{ id: string }>`select id from ${table} where paused_until > now()`.execute(db);
    return rows.map(({ id }) => id);
  }

  /**
   * Keeps receivers from being called for a while, and returns their ids. One that is being edited or deleted is passed over, as a claim waits
   * for no edit; so is one that is paused by now.
   */
  async function pause(db: Database, ids: string[], seconds: number): Promise<string[]> {
    const { rows } = await sql<{
      id: string;
    }>`update ${table} set paused_until = now() + make_interval(secs => ${seconds})
      where id in (select id from ${table} where id = any(${ids}::uuid[]) and (paused_until is null or paused_until <= now())
        for no key update skip locked) returning id`.execute(db);
    return rows.map(({ id }) => id);
  }

  return {
    /**
     * Locks the calls that are made next, none of them to a paused receiver. A receiver that failed all its last calls gets one, which tells
     * whether it is back, and is paused until that call has ended.
     */
    async chooseCalls<T extends DueCall>(
      db: Transaction,
      { limit, leaseSeconds }: ClaimRequest,
      busy: Busy,
      breaker: Breaker,
      { lockDue, receiverOf }: { lockDue: LockDue<T>; receiverOf: (call: T) => string },
    ): Promise<T[]> {
      const receiverIds = [...busy.receiverIds, ...(await listPaused(db))];
      const locked = await lockDue(db, limit, { ...busy, receiverIds });
      const isFailing = (call: T) => call.failures >= breaker.failures;
      const due = locked.filter(
        (call, index) => !isFailing(call) || locked.findIndex((one) => receiverOf(one) === receiverOf(call)) === index,
      );
      const probed = due.filter(isFailing).map(receiverOf);
      const paused = probed.length > 0 ? await pause(db, probed, leaseSeconds) : [];
      return due.filter((call) => !isFailing(call) || paused.includes(receiverOf(call)));
    },

    /** Counts a failed call, and pauses the receiver where too many have failed. */
    countFailure: (db: Database, id: string, { failures, pauseMs, longestPauseMs }: Breaker) =>
      sql`update ${table} set failures = failures + 1,
        paused_until = case when failures + 1 >= ${failures} then now() + interval '1 millisecond'
          * least(${longestPauseMs}::float8, ${pauseMs}::float8 * 2 ^ least(failures + 1 - ${failures}, 20)) end
        where id = ${id}`.execute(db),

    /** Ends a row of failures. */
    forgetFailures: (db: Database, id: string) =>
      sql`update ${table} set failures = 0, paused_until = null where id = ${id} and failures > 0`.execute(db),
  };
}
