import pg, { type ClientConfig } from 'pg';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { findServer } from '#platform/database/find-server.ts';
import { openDatabase, sql, type OpenDatabase } from '#platform/database/index.ts';
import { isPooled } from '#platform/database/pooler.ts';
import { prepared, preparedRead } from '#platform/database/prepared.ts';
import { cloneDatabase } from '#test/harness/database.ts';
import { noPooler, startPooler, type Pooler } from '#test/harness/pgbouncer.ts';

describe.skipIf(noPooler)('through PgBouncer in transaction mode', () => {
  let clone: { config: ClientConfig; drop(): Promise<void> };
  let other: typeof clone;
  let pooler: Pooler;
  let open: OpenDatabase;
  beforeAll(async () => {
    clone = await cloneDatabase(inject('postgres'), inject('template'));
    other = await cloneDatabase(inject('postgres'), inject('template'));
    pooler = await startPooler(clone.config);
    open = openDatabase({ config: { ...pooler.config, max: 20 }, isPooled: true });
    await sql`create table thing (id integer primary key, name text not null)`.execute(open.db);
    await sql`insert into thing select n, 'thing ' || n from generate_series(1, 100) as n`.execute(open.db);
  });
  afterAll(async () => {
    await open.close();
    await pooler.stop();
    await Promise.all([clone.drop(), other.drop()]);
  });

  const things = () => open.db.selectFrom(sql`thing`.as('thing') as never) as any;
  const directUrl = ({ config } = clone) =>
    `postgres://${config.user}:${String(config.password)}@/${config.database}?host=${config.host}&port=${config.port}`;

  test('a pooler is told from the server itself', async () => {
    for (const [config, expected] of [
      [pooler.config, true],
      [clone.config, false],
    ] as const) {
      const client = new pg.Client(config);
      await client.connect();
      expect(await isPooled(client)).toBe(expected);
      await client.end();
    }
  });

  test('200 statements at once over four connections are each answered with their own rows', async () => {
    const read = preparedRead((db, id: number) =>
      (db.selectFrom(sql`thing`.as('thing') as never) as any).selectAll().where(sql`id = ${id}`),
    );
    const ids = Array.from({ length: 200 }, (_, index) => (index % 100) + 1);
    const answers = await Promise.all(
      ids.map((id, index) =>
        index % 2
          ? read(open.db, id)
          : things()
              .selectAll()
              .where(sql`id = ${id}`)
              .execute(),
      ),
    );
    expect(answers).toEqual(ids.map((id) => [{ id, name: `thing ${id}` }]));
  });

  test('transactions at once see their own writes, and a rolled back one leaves nothing', async () => {
    const results = await Promise.allSettled(
      Array.from({ length: 40 }, (_, index) =>
        open.db.transaction().execute(async (db) => {
          await sql`update thing set name = ${`changed ${index}`} where id = ${index + 1}`.execute(db);
          const { rows } = await sql<{ name: string }>`select name from thing where id = ${index + 1}`.execute(db);
          if (index % 2) throw new Error('back');
          return rows[0]!.name;
        }),
      ),
    );
    for (const [index, result] of results.entries())
      expect(result).toMatchObject(index % 2 ? { status: 'rejected' } : { value: `changed ${index}` });
    const { rows } = await sql<{ n: number }>`select count(*) as n from thing where name like 'changed%'`.execute(
      open.db,
    );
    expect(rows[0]!.n).toBe(20);
  });

  test('limits of time hold in a transaction and for a statement alone, and end with it', async () => {
    const limits = sql<{ lock: string; idle: string }>`select current_setting('lock_timeout') as lock,
      current_setting('idle_in_transaction_session_timeout') as idle`;
    const expected = [{ lock: '15s', idle: '30s' }];
    expect((await limits.execute(open.db)).rows).toEqual(expected);
    expect((await open.db.transaction().execute((db) => limits.execute(db))).rows).toEqual(expected);
    expect(
      (
        await open.db
          .transaction()
          .setIsolationLevel('repeatable read')
          .setAccessMode('read only')
          .execute((db) => limits.execute(db))
      ).rows,
    ).toEqual(expected);
    const client = new pg.Client(pooler.config);
    await client.connect();
    expect((await client.query('show lock_timeout')).rows).toEqual([{ lock_timeout: '0' }]);
    await client.end();
  });

  test('a statement that fails alone says why, and the next one over the connection works', async () => {
    const single = openDatabase({ config: { ...pooler.config, max: 1 }, isPooled: true });
    const write = prepared(
      (db, id: number) =>
        ({ compile: () => sql`insert into thing values (${id}, 'again') returning *`.compile(db) }) as never,
    );
    await expect(write(single.db, 1)).rejects.toMatchObject({ code: '23505', constraint: 'thing_pkey' });
    await expect(sql`select nonsense`.execute(single.db)).rejects.toMatchObject({ code: '42703' });
    expect(await write(single.db, 1000)).toEqual([{ id: 1000, name: 'again' }]);
    await sql`delete from thing where id = 1000`.execute(single.db);
    await single.close();
  });

  test('a constraint that is checked at the end of a statement alone fails that statement', async () => {
    await sql`create table part (thing integer references thing deferrable initially deferred)`.execute(open.db);
    await expect(sql`insert into part values (0)`.execute(open.db)).rejects.toMatchObject({ code: '23503' });
    expect((await sql`select from part`.execute(open.db)).rows).toEqual([]);
  });

  test('the settings are refused with the one to be changed until they lead to one database directly, too', async () => {
    const ask = (databaseUrl: string, databaseDirectUrl: string) => findServer({ databaseUrl, databaseDirectUrl });
    await expect(ask(pooler.url, '')).rejects.toThrow(/^DATABASE_URL leads through a pooler: set DATABASE_DIRECT_URL/);
    await expect(ask(pooler.url, pooler.url)).rejects.toThrow(/^DATABASE_DIRECT_URL leads through a pooler/);
    await expect(ask(pooler.url, directUrl(other))).rejects.toThrow(/^DATABASE_DIRECT_URL leads to another database/);
    await expect(ask(pooler.url, 'postgres://a@127.0.0.1:1/a')).rejects.toThrow(/^DATABASE_DIRECT_URL: the PostgreSQL/);
    await expect(ask(pooler.url, directUrl())).resolves.toMatchObject({ isPooled: true });
    await expect(ask(directUrl(), '')).resolves.toMatchObject({ isPooled: false });
    await expect(ask(directUrl(), directUrl())).resolves.toMatchObject({ isPooled: false });
  });
});
