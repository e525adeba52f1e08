import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { sql } from '#platform/database/index.ts';
import { countEnded, createTestTables, itemOf, makeItems } from '#platform/work/work.fixture.ts';
import { startChild, type ChildOfTest } from '#test/crash/harness/process.ts';
import { useApp } from '#test/harness/app.ts';

const app = useApp();
const LEASE_SECONDS = 1.5;
beforeAll(() => createTestTables(app.db));
const children = new Set<ChildOfTest>();
afterEach(async () => {
  await Promise.all([...children].map((child) => child.kill()));
  children.clear();
  await sql`truncate test_work, test_effect`.execute(app.db);
});

function begin(worker: string, options: { slots?: number; stepMs?: number } = {}): ChildOfTest {
  const order = { config: app.databaseConfig, worker, leaseSeconds: LEASE_SECONDS, slots: 4, stepMs: 50, ...options };
  const child = startChild('test/crash/work.fixture.ts', [], process.env, JSON.stringify(order));
  children.add(child);
  return child;
}

const effectsOf = async (item: string) =>
  (
    await sql<{
      worker: string;
      step: string;
    }>`select worker, step from test_effect where item = ${item} order by at`.execute(app.db)
  ).rows.map(({ worker, step }) => `${worker} ${step}`);

/** Returns items that did not end exactly once, or that had two concurrent runs. */
async function findWrong(): Promise<string[]> {
  const { rows } = await sql<{ item: string }>`
    select w.id as item from test_work w
      where (select count(*) from test_effect e where e.item = w.id and e.step = 'end') <> (w.status = 'ENDED')::int
    union
    -- An effect of one worker after another one has begun the item.
    select later.item from test_effect later join test_effect other on other.item = later.item and other.worker <> later.worker
      where later.step <> 'first' and other.step = 'first' and other.at < later.at
        and other.at > (select max(own.at) from test_effect own where own.item = later.item and own.worker = later.worker
          and own.step = 'first' and own.at < later.at)`.execute(app.db);
  return rows.map(({ item }) => item);
}

test('an item whose process is killed is carried on by another one, and ends once', { concurrent: false }, async () => {
  const [id] = await makeItems(app.db, 1);
  const dead = begin('dead', { stepMs: 60_000 });
  await dead.says(/^first$/m);
  await dead.kill();
  begin('heir');
  await expect.poll(() => countEnded(app.db, [id!])).toBe(1);
  expect(await effectsOf(id!)).toEqual(['dead first', 'heir first', 'heir second', 'heir end']);
  expect(await itemOf(app.db, id!)).toMatchObject({ attempts: 2 });
});

test('a process that was frozen for longer than its lease does nothing more to its item', async () => {
  const [id] = await makeItems(app.db, 1);
  const frozen = begin('frozen', { stepMs: 300 });
  await frozen.says(/^first$/m);
  frozen.freeze();
  begin('heir');
  await expect.poll(() => countEnded(app.db, [id!])).toBe(1);
  frozen.wake();
  // The process continues to work: it begins with another item.
  const [next] = await makeItems(app.db, 1);
  await expect.poll(() => countEnded(app.db, [next!])).toBe(1);
  expect(await frozen.terminate()).toBe(0);
  expect(await effectsOf(id!)).toEqual(['frozen first', 'heir first', 'heir second', 'heir end']);
});

test('a process that is asked to end gives its items back, which others begin at once', async () => {
  const [id] = await makeItems(app.db, 1);
  const first = begin('first', { stepMs: 300 });
  await first.says(/^first$/m);
  expect(await first.terminate()).toBe(0);
  expect(await itemOf(app.db, id!)).toMatchObject({ attempts: 0, claim_token: null, lease_until: null });
  begin('second');
  await expect.poll(() => countEnded(app.db, [id!])).toBe(1);
});

test('items are carried on when the database, which was away for longer than a lease, is back', async () => {
  const ids = await makeItems(app.db, 30);
  for (const worker of ['a', 'b']) begin(worker, { stepMs: 200 });
  await expect.poll(() => countEnded(app.db, ids)).toBeGreaterThan(3);
  const { database, ...config } = app.databaseConfig;
  const outside = new pg.Client({ ...config, database: 'postgres' });
  await outside.connect();
  try {
    await outside.query(`alter database ${database} with allow_connections false`);
    const ends = `select pg_terminate_backend(pid) from pg_stat_activity where datname = $1`;
    for (let end = performance.now() + LEASE_SECONDS * 1500; performance.now() < end; await sleep(100))
      await outside.query(ends, [database]);
  } finally {
    await outside.query(`alter database ${database} with allow_connections true`);
    await outside.end();
  }
  await expect.poll(() => countEnded(app.db, ids).catch(() => 0), { timeout: 30_000 }).toBe(30);
  expect(await findWrong()).toEqual([]);
});

test('of many items none is run by two processes, while some are killed, frozen and begun anew', async () => {
  const ids = await makeItems(app.db, 150);
  let number = 0;
  const next = () => begin(`worker ${++number}`);
  const workers = [next(), next(), next()];
  for (let round = 0; (await countEnded(app.db, ids)) < 150; round++) {
    await sleep(400);
    const [worker] = workers.splice(round % workers.length, 1);
    if (round % 3 === 2) {
      worker!.freeze();
      await sleep(LEASE_SECONDS * 1000);
      worker!.wake();
      workers.push(worker!);
    } else {
      void (round % 3 === 0 ? worker!.kill() : worker!.terminate());
      workers.push(next());
    }
  }
  expect(await findWrong()).toEqual([]);
});
