import { expect } from 'vitest';
import type { Breaker } from '#delivery/receivers/breaker.ts';
import { sql, type Database } from '#platform/database/index.ts';

/** Breaker whose pauses no test outlasts: a test ends them itself, so that the speed of the machine decides nothing. */
export const LONG_PAUSES: Breaker = { failures: 10, pauseMs: 3_600_000, longestPauseMs: 3_600_000 };

const TABLES = {
  webhook: { calls: sql.table('webhook_delivery'), receiver: sql.ref('webhook_id') },
  alert_receiver: { calls: sql.table('alert_message'), receiver: sql.ref('receiver_id') },
};

/** Observes and ends the pauses of a receiver under `LONG_PAUSES`. */
export function pausesOf(db: Database, table: keyof typeof TABLES, id: string) {
  const { calls, receiver } = TABLES[table];
  const row = async () =>
    (
      await sql<{ failures: number; isPaused: boolean; isCalled: boolean; attempts: number }>`
      select r.failures, coalesce(r.paused_until > now() + interval '30 minutes', false) as "isPaused",
        exists (select from ${calls} where ${receiver} = r.id and claim_token is not null) as "isCalled",
        (select sum(attempts)::integer from ${calls} where ${receiver} = r.id) as attempts
      from ${sql.table(table)} r where r.id = ${id}`.execute(db)
    ).rows[0]!;
  return {
    /** Waits until the receiver is paused for its failures and no call is under way; returns failures and calls so far. */
    async begun() {
      await expect.poll(row).toMatchObject({ isPaused: true, isCalled: false });
      const { failures, attempts } = await row();
      return { failures, attempts };
    },

    /** Returns failures and calls so far. */
    async counts() {
      const { failures, attempts } = await row();
      return { failures, attempts };
    },

    /** Ends the pause, as if its time had passed. */
    end: () =>
      sql`update ${sql.table(table)} set paused_until = now() - interval '1 second' where id = ${id}`.execute(db),
  };
}
