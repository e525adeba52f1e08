/** The bare minimum beside the service: `node:http` and `pg`, which send the statements that the service sent and nothing else. */
import { createHash, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import pg from 'pg';
import { offer } from './processes.ts';

export interface Statement {
  text: string;
  values: unknown[];
}

let pool: pg.Pool;
let statements: (Statement & { name: string })[] = [];
let fresh: string[] = [];

const nameOf = (text: string) => createHash('sha1').update(text).digest('base64url');
const WORDS = new Set(['begin', 'commit']);

/** Puts new ids and names in the place of those that were recorded. */
function renewed(values: unknown[], replaced: Map<string, string>): unknown[] {
  return values.map((value) => {
    if (value instanceof Date) return new Date();
    if (typeof value !== 'string') return value;
    let text = value;
    for (const [old, now] of replaced) if (text.includes(old)) text = text.replaceAll(old, now);
    return text;
  });
}

async function carryOut(): Promise<unknown> {
  const replaced = new Map(fresh.map((old) => [old, randomUUID()]));
  const client = await pool.connect();
  let rows: unknown;
  try {
    for (const { text, values, name } of statements) {
      const answer = WORDS.has(text)
        ? await client.query(text)
        : await client.query({ name, text, values: fresh.length > 0 ? renewed(values, replaced) : values });
      if (answer.rows.length > 0) rows = answer.rows;
    }
  } finally {
    client.release();
  }
  if (rows === undefined)
    throw new Error(`None of the recorded statements answers rows: ${statements.map(({ text }) => text).join('; ')}`);
  return rows;
}

const server = createServer((request, response) => {
  request.resume().on('end', () => {
    carryOut().then(
      (rows) => {
        const body = JSON.stringify(rows);
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
        response.end(body);
      },
      (error: Error) => response.writeHead(500).end(error.message),
    );
  });
});
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));

offer(
  {
    open: (database: pg.PoolConfig) => {
      pool = new pg.Pool({ ...database, max: 16 });
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    },
    /** Sets the statements that each request executes from now on; `fresh` names recorded texts that are new in every request. */
    serve: (work: { statements: Statement[]; fresh: string[] }) => {
      statements = work.statements.map((statement) => ({ ...statement, name: nameOf(statement.text) }));
      fresh = work.fresh;
    },
  },
  async () => {
    server.closeAllConnections();
    await pool.end();
  },
);
