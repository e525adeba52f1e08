import { expect, inject, test } from 'vitest';
import { openDatabase, sql } from '#platform/database/index.ts';

const config = { ...inject('postgres'), max: 2 };

const end = (pid: number, db: ReturnType<typeof openDatabase>['db']) =>
  sql`select pg_terminate_backend(${pid})`.execute(db);

test('a connection that ends between the statements of a transaction fails that transaction, and nothing else', async () => {
  const [mine, other] = [openDatabase({ config }), openDatabase({ config })];
  try {
    const transaction = mine.db.transaction().execute(async (inside) => {
      const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(inside);
      await end(rows[0]!.pid, other.db);
      // It hears of it with no statement under way: what nobody listened to would end the process.
      await new Promise((resolve) => setTimeout(resolve, 50));
      await sql`select 1`.execute(inside);
    });
    await expect(transaction).rejects.toThrow();
    expect((await sql`select 1 as one`.execute(mine.db)).rows).toEqual([{ one: 1 }]);
  } finally {
    await Promise.all([mine.close(), other.close()]);
  }
});
