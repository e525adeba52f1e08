import type { ClientConfig } from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest';
import { inTransaction, systemContext, type Platform } from '#platform/context.ts';
import { createLine, LineBroken, type Line } from '#platform/database/line.ts';
import { openDatabase, sql, type OpenDatabase } from '#platform/database/index.ts';
import { prepared, preparedRead } from '#platform/database/prepared.ts';
import { cloneDatabase } from '#test/harness/database.ts';

let clone: { config: ClientConfig; drop(): Promise<void> };
let open: OpenDatabase;
let line: Line;
beforeAll(async () => {
  clone = await cloneDatabase(inject('postgres'), inject('template'));
  open = openDatabase({ config: { ...clone.config, max: 4 } });
  line = createLine({ ...clone.config, application_name: 'line' });
});
beforeEach(async () => {
  await sql`drop table if exists thing`.execute(open.db);
  await sql`create table thing (id integer primary key, name text not null)`.execute(open.db);
  await sql`insert into thing select n, 'thing ' || n from generate_series(1, 500) as n`.execute(open.db);
});
afterAll(async () => {
  await line.close();
  await open.close();
  await clone.drop();
});

const asked = (id: number) => ({ text: 'select * from thing where id = $1', values: [id], name: 'thing' });
const number = (n: number) => ({ text: 'select $1::int as n', values: [n], name: 'number' });

/** Ends every connection of the name to this file's database, as a restart of PostgreSQL would. Other files share the server. */
const endConnections = (name: string) =>
  sql`select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and application_name = ${name} and pid <> pg_backend_pid()`.execute(open.db);

describe('a line', () => {
  test('gives each of many who ask at once their own answer', async () => {
    const ids = Array.from({ length: 500 }, (_, index) => index + 1);
    const answers = await Promise.all(ids.map((id) => line.send(asked(id))));
    expect(answers).toEqual(ids.map((id) => [{ id, name: `thing ${id}` }]));
  });

  test('lets an error reach whoever caused it, and nobody else', async () => {
    const answers = await Promise.allSettled([
      line.send(number(1)),
      line.send({ text: 'select 1 / $1::int', values: [0], name: 'division' }),
      line.send(number(2)),
      line.send({ text: 'select nonsense', values: [], name: 'nonsense' }),
      line.send(number(3)),
    ]);
    expect(answers.map((answer) => (answer.status === 'fulfilled' ? answer.value : answer.reason.code))).toEqual([
      [{ n: 1 }],
      '22012',
      [{ n: 2 }],
      '42703',
      [{ n: 3 }],
    ]);
  });

  test('tells those who wait when its connection ends, and connects anew for the next', async () => {
    await line.send(number(1));
    const waiting = line.send({ text: 'select pg_sleep(60)', values: [], name: undefined });
    const behind = line.send(number(2));
    const refused = Promise.all([
      expect(waiting).rejects.toBeInstanceOf(LineBroken),
      expect(behind).rejects.toBeInstanceOf(LineBroken),
    ]);
    await endConnections('line');
    await refused;
    expect(await line.send(number(3))).toEqual([{ n: 3 }]);
  });

  test('answers what is under way before it closes, and opens again', async () => {
    const own = createLine(clone.config);
    const waiting = [own.send(number(1)), own.send(number(2))];
    await Promise.all([waiting[0], own.close()]);
    expect(await Promise.all(waiting)).toEqual([[{ n: 1 }], [{ n: 2 }]]);
    expect(await own.send(number(3))).toEqual([{ n: 3 }]);
    await own.close();
  });
});

/** A table of the tests that is none of the program's. */
const things = (db: Parameters<Parameters<typeof prepared>[0]>[0]) =>
  db.selectFrom(sql`thing`.as('thing') as never) as any;

describe('a prepared statement', () => {
  const read = preparedRead((db, id: number, factor: number) =>
    things(db)
      .selectAll()
      .select(sql`id * ${factor}::int`.as('product'))
      .where(sql`id = ${id}`),
  );
  const write = prepared(
    (db, name: string, id: number) =>
      ({
        compile: () => sql`update thing set name = ${name} where id = ${id} returning *`.compile(db),
      }) as never,
  );

  test('takes its arguments wherever they stand', async () => {
    expect(await read(open.db, 7, 6)).toEqual([{ id: 7, name: 'thing 7', product: 42 }]);
    expect(await read(open.db, 2, 3)).toEqual([{ id: 2, name: 'thing 2', product: 6 }]);
  });

  test('sees in a transaction what the transaction did', async () => {
    await open.db.transaction().execute(async (db) => {
      await write(db, 'changed', 5);
      expect(await read(db, 5, 1)).toMatchObject([{ name: 'changed' }]);
      expect(await read(open.db, 5, 1)).toMatchObject([{ name: 'thing 5' }]);
    });
  });

  test('is read again over another connection when the one that it shares ends', async () => {
    await read(open.db, 1, 1);
    const many = Promise.all(Array.from({ length: 50 }, () => read(open.db, 3, 1)));
    const [answers] = await Promise.all([many, endConnections('quarterdeck')]);
    expect(answers).toEqual(Array.from({ length: 50 }, () => [{ id: 3, name: 'thing 3', product: 3 }]));
  });

  test('goes on after a newer release has given its table another column', async () => {
    await Promise.all(Array.from({ length: 8 }, () => read(open.db, 1, 1)));
    await write(open.db, 'before', 1);
    await sql`alter table thing add column more text default 'm'`.execute(open.db);
    expect(await read(open.db, 1, 1)).toEqual([{ id: 1, name: 'before', more: 'm', product: 1 }]);
    expect(await write(open.db, 'after', 1)).toMatchObject([{ name: 'after', more: 'm' }]);
  });

  test('of a transaction fails once then, and the transaction is done again', async () => {
    const context = systemContext({ db: open.db, log: pino({ level: 'silent' }) } as unknown as Platform);
    const work = () => inTransaction(context, async ({ db }) => write(db, 'in a transaction', 2));
    await Promise.all(Array.from({ length: 8 }, work));
    await sql`alter table thing add column more text default 'm'`.execute(open.db);
    expect(await work()).toMatchObject([{ more: 'm' }]);
  });
});
