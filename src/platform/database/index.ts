import { createHash } from 'node:crypto';
import { Kysely, PostgresDialect, sql, type Transaction as KyselyTransaction } from 'kysely';
import pg from 'pg';
import type { DB } from '#platform/database/tables.ts';

export type { DB } from '#platform/database/tables.ts';
export { sql };

/** Where statements go: the pool or a transaction. */
export type Database = Kysely<DB>;
export type Transaction = KyselyTransaction<DB>;

/** Whose rows a query may see. Every query on a tenant's table takes one. */
export interface Scope {
  organizationId: string;
}

pg.types.setTypeParser(pg.types.builtins.INT8, Number);

/** Statement names are kept per connection by the server, so only as many as a program's own texts are named. */
const MAX_NAMED = 2000;

export interface DatabaseOptions {
  config: pg.PoolConfig;
  /** Called with each statement's text; tests record them. */
  onStatement?: (text: string) => void;
}

export interface OpenDatabase {
  db: Database;
  pool: pg.Pool;
  close(): Promise<void>;
}

type Send = (text: string, values: unknown[]) => Promise<unknown[]>;
const pools = new WeakMap<Database, Send>();

/** Sends a statement to the pool itself, past the query builder; undefined for a transaction. For prepared.ts. */
export const poolOf = (db: Database): Send | undefined => pools.get(db);

/**
 * Opens a pool. Statements are sent under a name made from their text, so that PostgreSQL plans each of them once per
 * connection (measured: a third less processor time a select).
 */
export function openDatabase({ config, onStatement }: DatabaseOptions): OpenDatabase {
  const pool = new pg.Pool({
    application_name: 'quarterdeck',
    idle_in_transaction_session_timeout: 30_000,
    lock_timeout: 15_000,
    ...config,
  });
  pool.on('error', () => undefined); // An idle connection broke (PostgreSQL was restarted): the pool opens another.
  const names = new Map<string, string>();
  const nameOf = (text: string): string | undefined => {
    let name = names.get(text);
    if (!name && names.size < MAX_NAMED)
      names.set(text, (name = createHash('sha256').update(text).digest('base64url').slice(0, 20)));
    return name;
  };
  const dialect = new PostgresDialect({
    pool: {
      connect: async () => {
        const client = await pool.connect();
        return {
          query: (text: string, values: readonly unknown[]) => {
            onStatement?.(text);
            return client.query({ text, values: [...values], name: nameOf(text) });
          },
          release: () => client.release(),
        } as never;
      },
      end: () => pool.end(),
    },
  });
  const db = new Kysely<DB>({ dialect });
  pools.set(db, async (text, values) => {
    onStatement?.(text);
    return (await pool.query({ text, values, name: nameOf(text) })).rows;
  });
  return { db, pool, close: () => db.destroy() };
}

/** `created_at` of the rows of one statement, a microsecond apart: lists in creation order show them as they were given. */
export const inOrder = (index: number) => sql<Date>`now() + ${index} * interval '1 microsecond'`;

/** Names of constraints that a statement broke, to be translated into a message for the user. */
export function brokenConstraint(error: unknown): string | undefined {
  const code = (error as { code?: string }).code;
  return code === '23505' || code === '23503' ? (error as { constraint?: string }).constraint : undefined;
}

/** Shut down, crashed, starting up, out of connections or of disk (PostgreSQL's classes 08, 53 and 57P). */
const AWAY = /^(08|53|57P0)/;

/** Whether the database could not be reached or could not go on, whatever was asked of it. */
export function isDatabaseAway(error: unknown): boolean {
  const { code, message } = error as { code?: string; message?: string };
  return (
    AWAY.test(code ?? '') ||
    ['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ENOENT', 'ETIMEDOUT'].includes(code ?? '') ||
    /^Connection terminated|^timeout exceeded when trying to connect|^Client has encountered a connection error/.test(
      message ?? '',
    )
  );
}
