import { createHash } from 'node:crypto';
import { Kysely, PostgresDialect, sql, type Transaction as KyselyTransaction } from 'kysely';
import pg from 'pg';
import { breakingOff, STANDBY } from '#platform/database/answer-limit.ts';
import { createLine, LineBroken } from '#platform/database/line.ts';
import { withOpening } from '#platform/database/opening.ts';
import { LIMITS, throughPooler } from '#platform/database/pooler.ts';
import type { DB } from '#platform/database/tables.ts';

export type { DB } from '#platform/database/tables.ts';
export { sql };

/** Pool or transaction that statements go to. */
export type Database = Kysely<DB>;
export type Transaction = KyselyTransaction<DB>;

/** Organization whose rows a query may see. Every query on a tenant's table takes one. */
export interface Scope {
  organizationId: string;
}

pg.types.setTypeParser(pg.types.builtins.INT8, Number);

/** Statement names are kept per connection by the server, so only as many as a program's own texts are named. */
const MAX_NAMED = 2000;
/** SQLSTATE of a statement whose table has changed since it was prepared, because a newer release has migrated the database. */
const STALE_PLAN = '0A000';

export interface DatabaseOptions {
  config: pg.PoolConfig;
  /** True if the connections go through a pooler (pooler.ts). */
  isPooled?: boolean;
  /** Seconds for a connection and for each answer. A statement without an answer breaks its connection. Absent: no limit. */
  answerSeconds?: number;
  /** Called with each statement's text; tests record them. */
  onStatement?: (text: string) => void;
}

export interface OpenDatabase {
  db: Database;
  pool: pg.Pool;
  /** Sends one statement outside of transactions. */
  query(text: string, values: unknown[]): Promise<unknown[]>;
  close(): Promise<void>;
}

/** Sender of statements outside of transactions, past the query builder (prepared.ts). */
export interface Wire {
  send(text: string, values: unknown[]): Promise<unknown[]>;
  /** Sends a read by key over a connection that many callers share (line.ts). */
  read(text: string, values: unknown[]): Promise<unknown[]>;
}

const wires = new WeakMap<Database, Wire>();

/** Returns the sender of statements; undefined for a transaction. */
export const wireOf = (db: Database): Wire | undefined => wires.get(db);

/**
 * Opens a pool. Statements are sent under a name made from their text, so that PostgreSQL plans each of them once per
 * connection (measured: a third less processor time a select); through a pooler they have none.
 */
export function openDatabase({ config, isPooled, onStatement, answerSeconds }: DatabaseOptions): OpenDatabase {
  const defaults: pg.PoolConfig = {
    application_name: 'quarterdeck',
    ...(isPooled ? PIPELINED : LIMITS),
    ...(answerSeconds === undefined ? {} : { connectionTimeoutMillis: answerSeconds * 1000 }),
  };
  const pool = new pg.Pool({ ...defaults, ...config });
  pool.on('error', () => undefined); // An idle connection broke (PostgreSQL was restarted): the pool opens another.
  // The pool does not listen on a connection in use: an error without a listener would end the process. The next statement reports the end.
  pool.on('connect', (client) => client.on('error', () => undefined));
  const names = new StatementNames();
  const askerOf = (client: pg.PoolClient) => {
    const ask = isPooled ? throughPooler(client) : withOpening(client, named(client, names), names);
    return (text: string, values: readonly unknown[]) => breakingOff(client, ask(text, values), answerSeconds);
  };
  const dialect = new PostgresDialect({
    pool: {
      connect: async () => {
        const client = await pool.connect();
        const ask = askerOf(client);
        return {
          query: (text: string, values: readonly unknown[]) => {
            onStatement?.(text);
            return ask(text, values);
          },
          release: () => client.release(),
        } as never;
      },
      end: () => pool.end(),
    },
  });
  const db = new Kysely<DB>({ dialect });
  const send = async (text: string, values: unknown[]): Promise<unknown[]> => {
    const client = await pool.connect();
    try {
      return (await askerOf(client)(text, values)).rows;
    } finally {
      client.release();
    }
  };
  // Through a pooler each read is sent by itself: what it makes of many statements at once is its own affair.
  const line = isPooled ? undefined : createLine({ ...defaults, ...config }, answerSeconds);
  wires.set(db, {
    send: (text, values) => {
      onStatement?.(text);
      return send(text, values);
    },
    read: async (text, values) => {
      onStatement?.(text);
      if (!line) return send(text, values);
      try {
        return await line.send({ text, values, name: names.of(text) }).catch(names.heed);
      } catch (error) {
        // A read may be done again, over a connection of its own.
        if (error instanceof LineBroken || (error as { code?: string }).code === STALE_PLAN) return send(text, values);
        throw error;
      }
    },
  });
  return { db, pool, query: send, close: async () => void (await Promise.all([line?.close(), db.destroy()])) };
}

/** Option of the driver that its types leave out. */
const PIPELINED = { pipeline: true } as pg.PoolConfig;

const named = (client: pg.PoolClient, names: StatementNames) => (text: string, values: readonly unknown[]) =>
  client.query({ text, values: [...values], name: names.of(text) }).catch(names.heed);

/** Names of prepared statements. */
class StatementNames {
  readonly #names = new Map<string, string>();
  #generation = 0;

  /** Returns the name of a statement; undefined beyond the limit of names. */
  of(text: string): string | undefined {
    let name = this.#names.get(text);
    if (!name && this.#names.size < MAX_NAMED) {
      const digest = createHash('sha256').update(`${this.#generation} ${text}`).digest('base64url');
      this.#names.set(text, (name = digest.slice(0, 20)));
    }
    return name;
  }

  /** Renames all prepared statements after one was refused because a table changed: each would fail once per connection otherwise. */
  heed = (error: unknown): never => {
    if ((error as { code?: string }).code === STALE_PLAN) {
      this.#generation++;
      this.#names.clear();
    }
    throw error;
  };
}

/** `created_at` of the rows of one statement, a microsecond apart: lists in creation order show them as they were given. */
export const inOrder = (index: number) => sql<Date>`now() + ${index} * interval '1 microsecond'`;

/** Names of constraints that a statement broke, to be translated into a message for the user. */
export function brokenConstraint(error: unknown): string | undefined {
  const code = (error as { code?: string }).code;
  return code === '23505' || code === '23503' ? (error as { constraint?: string }).constraint : undefined;
}

/** Shut down, crashed, starting up, out of connections or of disk (PostgreSQL's classes 08, 53 and 57P), or a standby. */
const AWAY = new RegExp(`^(08|53|57P0|${STANDBY})`);

const SOCKET_CODES = ['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ENOENT', 'ETIMEDOUT'];

/** Messages of the client of the database, whose errors have no code. */
const CLIENT_MESSAGE =
  /^Connection terminated|^timeout (exceeded when trying to connect|expired$)|^Query read timeout$|^Client has encountered a connection error/;

/** Returns whether the database could not be reached or could not go on, whatever the statement. */
export function isDatabaseAway(error: unknown): boolean {
  const { code, message, syscall } = error as { code?: string; message?: string; syscall?: string };
  return (
    AWAY.test(code ?? '') ||
    // Of its socket, and not of a file.
    (SOCKET_CODES.includes(code ?? '') && ['connect', 'read', 'write'].includes(syscall ?? '')) ||
    CLIENT_MESSAGE.test(message ?? '')
  );
}

/**
 * Returns whether an error is of the database or of its client, and not of another server that was asked. Its text may have parts of a statement
 * and is not for users.
 */
export const isDatabaseError = (error: unknown): boolean =>
  error instanceof pg.DatabaseError || CLIENT_MESSAGE.test((error as Error).message);
