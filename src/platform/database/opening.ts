import type { Socket } from 'node:net';
import pg from 'pg';
import { BEGIN, END, type Ask } from '#platform/database/pooler.ts';

/** Parts of the driver's connection that its types leave out. */
interface Connection {
  stream: Socket;
  /** Texts of the prepared statements, by name. */
  parsedStatements: Record<string, string | undefined>;
  bind(options: { statement: string }): void;
  execute(options: object): void;
}

/** Names of prepared statements. */
interface Names {
  of(text: string): string | undefined;
  /** Hears of the error of a statement, and throws it. */
  heed(error: unknown): never;
}

const EMPTY = { rowCount: null, oid: 0, rows: [], fields: [] };

/**
 * Sends statements of a borrowed connection. A transaction begins in the message of its first statement: the round trip of a `begin` costs
 * as much as that of any statement. `ask` sends a statement by itself, prepared under its name.
 */
export function withOpening(client: pg.ClientBase, ask: Ask, names: Names): Ask {
  const { connection } = client as unknown as { connection: Connection };
  let begin: { text: string; name: string } | undefined;
  return async (text, values) => {
    if (begin) {
      const opening = begin;
      begin = undefined;
      // A transaction without a statement.
      if (END.test(text)) return { command: text.toUpperCase(), ...EMPTY };
      return open(client, opening, { text, values: [...values], name: names.of(text) }).catch(names.heed);
    }
    const name = BEGIN.test(text) ? names.of(text) : undefined;
    // The first one of a connection goes out by itself, and is prepared.
    if (name === undefined || connection.parsedStatements[name] !== text) return ask(text, values);
    begin = { text, name };
    return { command: 'BEGIN', ...EMPTY };
  };
}

/** Sends the beginning of a transaction and its first statement. Returns the answer of the statement. */
const open = (
  client: pg.ClientBase,
  begin: { text: string; name: string },
  statement: { text: string; values: unknown[]; name: string | undefined },
): Promise<pg.QueryResult> =>
  new Promise((resolve, reject) => {
    const query = new FirstStatement(begin, statement);
    query.callback = (error, results) => (error ? reject(error) : resolve(results.at(-1)!));
    client.query(query as unknown as pg.Submittable);
  });

/** Query of the driver, with the parts that its types leave out. */
interface DriverQuery {
  callback(error: Error | null, results: pg.QueryResult[]): void;
  submit(connection: Connection): Error | null;
}
const Query = pg.Query as unknown as new (options: object) => DriverQuery;

/** First statement of a transaction. PostgreSQL skips it if the transaction cannot begin: one `Sync` ends the message of both. */
class FirstStatement extends Query {
  readonly begin: { text: string; name: string };

  constructor(begin: { text: string; name: string }, statement: object) {
    super({ ...statement, queryMode: 'extended' });
    this.begin = begin;
  }

  override submit(connection: Connection): Error | null {
    connection.stream.cork();
    try {
      connection.bind({ statement: this.begin.name });
      connection.execute({});
      return super.submit(connection);
    } finally {
      connection.stream.uncork();
    }
  }
}
