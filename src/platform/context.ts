import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Clock } from '#kernel/clock.ts';
import type { Database, Transaction } from '#platform/database/index.ts';
import type { Actor } from '#platform/access/principal.ts';
import type { Settings } from '#platform/settings/index.ts';
import type { Vault } from '#platform/vault/index.ts';

/**
 * What every rule gets besides its data: where to read and write, who acts, and the platform's parts. In a write `db` is
 * the one transaction of the request (HTTP opens it), so that rows, events and outbox stand or fall together.
 */
export interface Context {
  db: Database;
  actor: Actor;
  vault: Vault;
  settings: Settings;
  clock: Clock;
  log: Logger;
  requestId: string | null;
  /** Wakes whoever listens on the channel, in this process or another. Only a nudge, from `afterCommit`: listeners poll as well. */
  notify(channel: string, payload?: string): void;
  /** Done after the commit: wake a worker, close a stream. Never what must not be lost. */
  afterCommit(work: () => void): void;
}

/** The parts of a context that don't change from call to call. */
export type Platform = Pick<Context, 'vault' | 'settings' | 'clock' | 'log' | 'notify'> & { db: Database };

/** A context for work that nobody requested over HTTP: schedules, watchers, the command line. */
export const systemContext = (platform: Platform, name = 'quarterdeck'): Context => ({
  ...platform,
  actor: { userId: null, name, origin: 'QOVERY_INTERNAL', userAgent: null },
  requestId: null,
  afterCommit: (work) => work(),
});

/**
 * Deadlocks, serialisation failures, statements prepared before a table was changed: nothing was done, and the same work succeeds when it
 * is done again.
 */
const AGAIN = ['40P01', '40001', '0A000'];
const ATTEMPTS = 5;

/** Before work is done again, so that it does not meet at once what it was in the way of; at most so many milliseconds, times the attempt. */
const PAUSE_MS = 40;

/**
 * Runs the work in one transaction, then what it wanted done after the commit. Work that ends in a deadlock is done again,
 * so it must do nothing outside the transaction.
 */
export async function inTransaction<T>(context: Context, work: (context: Context) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const later: (() => void)[] = [];
    try {
      const result = await context.db
        .transaction()
        .execute((db: Transaction) => work({ ...context, db, afterCommit: (next) => later.push(next) }));
      for (const next of later) next();
      return result;
    } catch (error) {
      if (attempt === ATTEMPTS || !AGAIN.includes((error as { code?: string }).code ?? '')) throw error;
      context.log.info({ attempt }, 'a transaction could not go on: it is done again');
      await sleep(Math.random() * PAUSE_MS * attempt);
    }
  }
}
