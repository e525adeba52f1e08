import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest';
import { openDatabase, sql, type Database, type OpenDatabase } from '#platform/database/index.ts';
import { cloneDatabase } from '#test/harness/database.ts';

let clone: Awaited<ReturnType<typeof cloneDatabase>>;
let open: OpenDatabase;
beforeAll(async () => {
  clone = await cloneDatabase(inject('postgres'), inject('template'));
  open = openDatabase({ config: { ...clone.config, max: 1 } });
  await sql`create table kept (n int primary key)`.execute(open.db);
});
beforeEach(() => sql`delete from kept`.execute(open.db));
afterAll(async () => {
  await open.close();
  await clone.drop();
});

const kept = async () =>
  (await sql<{ n: number }>`select n from kept order by n`.execute(open.db)).rows.map(({ n }) => n);
const insert = (db: Database, n: number) => sql`insert into kept values (${n})`.execute(db);
const inTransaction = (work: (db: Database) => Promise<unknown>) => open.db.transaction().execute(work);

/** All of these run over one connection, on which only the first transaction sends its `begin` by itself. */
describe('a transaction that begins with its first statement', () => {
  test('keeps all of its statements, time after time', async () => {
    for (const n of [1, 3, 5])
      await inTransaction(async (db) => {
        await insert(db, n);
        await insert(db, n + 1);
      });
    expect(await kept()).toEqual([1, 2, 3, 4, 5, 6]);
  });

  test('answers the rows of its first statement, and how many it changed', async () => {
    await inTransaction((db) => insert(db, 1));
    await inTransaction(async (db) => {
      expect((await sql`select n from kept`.execute(db)).rows).toEqual([{ n: 1 }]);
    });
    await inTransaction(async (db) => {
      expect(await sql`update kept set n = 2`.execute(db)).toMatchObject({ numAffectedRows: 1n, rows: [] });
    });
  });

  test('keeps nothing where its work fails after the first statement', async () => {
    await inTransaction((db) => insert(db, 1));
    const failing = inTransaction(async (db) => {
      await insert(db, 2);
      throw new Error('the work fails');
    });
    await expect(failing).rejects.toThrow('the work fails');
    expect(await kept()).toEqual([1]);
  });

  test('keeps nothing where its first statement is refused, and its connection serves the next one', async () => {
    await inTransaction((db) => insert(db, 1));
    await expect(inTransaction((db) => insert(db, 1))).rejects.toMatchObject({ code: '23505' });
    await expect(inTransaction((db) => sql`select no_such`.execute(db))).rejects.toMatchObject({ code: '42703' });
    await expect(inTransaction((db) => sql`select no_such`.execute(db))).rejects.toMatchObject({ code: '42703' });
    await inTransaction((db) => insert(db, 2));
    expect(await kept()).toEqual([1, 2]);
  });

  test('that sends nothing leaves no transaction open', async () => {
    await inTransaction(async () => undefined);
    await inTransaction(async () => undefined);
    await expect(inTransaction(() => Promise.reject(new Error('no')))).rejects.toThrow('no');
    await insert(open.db, 1);
    expect(await kept()).toEqual([1]);
  });

  test('is of the isolation that it asked for', async () => {
    const isolation = () =>
      open.db
        .transaction()
        .setIsolationLevel('repeatable read')
        .setAccessMode('read only')
        .execute(async (db) => {
          await expect(insert(db, 1)).rejects.toMatchObject({ code: '25006' });
        });
    // A refused write counts as that of a standby, whose connection is not kept.
    await expect(isolation()).rejects.toThrow();
    const level = () =>
      open.db
        .transaction()
        .setIsolationLevel('repeatable read')
        .execute(async (db) => (await sql`show transaction_isolation`.execute(db)).rows);
    expect(await level()).toEqual([{ transaction_isolation: 'repeatable read' }]);
    expect(await level()).toEqual([{ transaction_isolation: 'repeatable read' }]);
  });

  test('is not carried out without it: a statement whose transaction cannot begin changes nothing', async () => {
    await inTransaction((db) => insert(db, 1));
    // The server loses the prepared `begin`.
    await open.pool.query('deallocate all');
    await expect(inTransaction((db) => insert(db, 2))).rejects.toMatchObject({ code: '26000' });
    expect((await open.pool.query('select n from kept')).rows).toEqual([{ n: 1 }]);
  });
});
