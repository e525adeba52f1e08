import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { expect, inject, test } from 'vitest';
import { isDatabaseAway, openDatabase, sql } from '#platform/database/index.ts';
import { prepared, preparedRead } from '#platform/database/prepared.ts';

const config = { ...inject('postgres'), max: 2 };

const end = (pid: number, db: ReturnType<typeof openDatabase>['db']) =>
  sql`select pg_terminate_backend(${pid})`.execute(db);

const isThere = async (pid: number, db: ReturnType<typeof openDatabase>['db']): Promise<boolean> =>
  (await sql`select from pg_stat_activity where pid = ${pid}`.execute(db)).rows.length > 0;

test('a connection that ends between the statements of a transaction fails that transaction, and nothing else', async () => {
  const [mine, other] = [openDatabase({ config }), openDatabase({ config })];
  try {
    const transaction = mine.db.transaction().execute(async (inside) => {
      const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(inside);
      await end(rows[0]!.pid, other.db);
      // The end comes with no statement under way: an error without a listener would end the process.
      await expect.poll(() => isThere(rows[0]!.pid, other.db)).toBe(false);
      await new Promise((turn) => setImmediate(turn));
      await sql`select 1`.execute(inside);
    });
    await expect(transaction).rejects.toThrow();
    expect((await sql`select 1 as one`.execute(mine.db)).rows).toEqual([{ one: 1 }]);
  } finally {
    await Promise.all([mine.close(), other.close()]);
  }
});

/** A way to the server that can go silent: connections stay, and nothing comes back over them. */
async function openWay() {
  const { host, port } = inject('postgres');
  const way = { silent: false, config: {}, close: () => undefined as unknown };
  const sockets: Socket[] = [];
  const relay = createServer((client) => {
    const server = host?.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect(port!, host);
    for (const socket of [client, server]) sockets.push(socket.on('error', () => undefined));
    client.on('data', (data) => server.write(data)).on('close', () => server.destroy());
    server.on('data', (data) => way.silent || client.write(data)).on('close', () => client.destroy());
  }).listen(0, '127.0.0.1');
  await once(relay, 'listening');
  way.config = { ...config, host: '127.0.0.1', port: (relay.address() as AddressInfo).port };
  way.close = () => {
    for (const socket of sockets) socket.destroy();
    relay.close();
  };
  return way;
}

test('a statement that is never answered ends, whichever way it is sent, and the next one has another connection', async () => {
  const way = await openWay();
  const open = openDatabase({ config: way.config, answerSeconds: 3 });
  const one = (db: typeof open.db) => db.selectNoFrom(sql<number>`1`.as('one'));
  const [sent, read] = [prepared(one), preparedRead(one)];
  const ask = () =>
    Promise.allSettled([
      open.db.transaction().execute((inside) => one(inside).execute()),
      sent(open.db),
      read(open.db),
      open.query('select 1 as one', []),
    ]);
  try {
    const answered = { status: 'fulfilled', value: [{ one: 1 }] };
    expect(await ask()).toEqual([answered, answered, answered, answered]);
    way.silent = true;
    const ended = { status: 'rejected', reason: expect.toSatisfy(isDatabaseAway) };
    expect(await ask()).toEqual([ended, ended, ended, ended]);
    way.silent = false;
    expect(await ask()).toEqual([answered, answered, answered, answered]);
  } finally {
    way.close();
    await open.close();
  }
});

test('a standby that refuses a write counts as a database that is away, and its connection is not kept', async () => {
  const open = openDatabase({ config: { ...config, max: 1, options: '-c default_transaction_read_only=on' } });
  const pid = async () => (await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(open.db)).rows[0]!.pid;
  try {
    const before = await pid();
    await expect(sql`create table never (a int)`.execute(open.db)).rejects.toSatisfy(isDatabaseAway);
    expect(await pid()).not.toBe(before);
  } finally {
    await open.close();
  }
});
