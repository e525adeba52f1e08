import type { Logger } from 'pino';
import type { Clock } from '#kernel/clock.ts';
import { untilDone } from '#platform/database/again.ts';
import type { Database, Transaction } from '#platform/database/index.ts';
import type { Action } from '#platform/access/actions.ts';
import type { Actor, Location } from '#platform/access/principal.ts';
import type { Settings } from '#platform/settings/index.ts';
import type { Vault } from '#platform/vault/index.ts';

/**
 * Surroundings of every rule besides its data: database, actor, and the platform's parts. In a write `db` is the one transaction of the
 * request (HTTP opens it), so that rows, events and outbox stand or fall together.
 */
export interface Context {
  db: Database;
  actor: Actor;
  vault: Vault;
  settings: Settings;
  clock: Clock;
  log: Logger;
  requestId: string | null;
  /** Wakes listeners on the channel, in this process or another. Only a nudge, from `afterCommit`: listeners poll as well. */
  notify(channel: string, payload?: string): void;
  /** Returns whether the caller of the request may do the action at the place; absent without a caller, as in the records of events. */
  may?(action: Action, at: Location): boolean;
  /** Runs work after the commit: wake a worker, close a stream. Never work that must not be lost. */
  afterCommit(work: () => void): void;
}

/** Parts of a context that don't change from call to call. */
export type Platform = Pick<Context, 'vault' | 'settings' | 'clock' | 'log' | 'notify'> & { db: Database };

/** Creates a context for work without a request over HTTP: schedules, watchers, the command line. */
export const systemContext = (platform: Platform, name = 'quarterdeck'): Context => ({
  ...platform,
  actor: { userId: null, name, origin: 'QOVERY_INTERNAL', userAgent: null },
  requestId: null,
  afterCommit: (work) => work(),
});

/**
 * Runs the work in one transaction, then what it wanted done after the commit. Work that ends in a deadlock is done again,
 * so it must do nothing outside the transaction.
 */
export const inTransaction = <T>(context: Context, work: (context: Context) => Promise<T>): Promise<T> =>
  untilDone(
    async () => {
      const later: (() => void)[] = [];
      const result = await context.db
        .transaction()
        .execute((db: Transaction) => work({ ...context, db, afterCommit: (next) => later.push(next) }));
      for (const next of later) next();
      return result;
    },
    (attempt) => context.log.info({ attempt }, 'a transaction could not go on: it is done again'),
  );

/**
 * Reads from one snapshot of the database: what is deleted or changed meanwhile is there for all statements of the work, or for none. A
 * statement that writes fails. Never waits for another system: it would hold a connection and keep PostgreSQL from cleaning up.
 */
export const inSnapshot = <C extends Context, T>(context: C, work: (context: C) => Promise<T>): Promise<T> =>
  context.db.isTransaction
    ? work(context)
    : untilDone(() =>
        context.db
          .transaction()
          .setIsolationLevel('repeatable read')
          .setAccessMode('read only')
          .execute((db: Transaction) => work({ ...context, db })),
      );
