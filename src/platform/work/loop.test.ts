import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import { ClaimLost, listenForWork, WorkLoop, WorkStopped } from '#platform/work/index.ts';
import {
  countEnded,
  createTestTables,
  endItem,
  itemOf,
  makeItems,
  TEST_TABLE,
  testKind,
  type TestClaim,
  type TestKind,
  type TestLease,
} from '#platform/work/work.fixture.ts';
import { useApp } from '#test/harness/app.ts';

const app = useApp();
beforeAll(() => createTestTables(app.db));
const loops: WorkLoop<TestClaim, 'cancel'>[] = [];
afterEach(async () => {
  await Promise.all(loops.splice(0).map((loop) => loop.stop()));
  await sql`truncate test_work`.execute(app.db);
});

type Options = Partial<Omit<TestKind, 'run'>>;
const kindOf = (run: TestKind['run'], options?: Options) => testKind(app.db, run, options);

function loopOf(run: TestKind['run'], { stopMs = 25_000, ...options }: Options & { stopMs?: number } = {}) {
  const loop = new WorkLoop(kindOf(run, options), { platform: app.platform, nodeId: newId(), stopMs });
  loops.push(loop);
  return loop;
}

function begin(...of: Parameters<typeof loopOf>) {
  const loop = loopOf(...of);
  loop.start();
  return loop;
}

const finish = (claim: TestClaim) => endItem(app.db, claim);
const aborted = (lease: TestLease) =>
  new Promise<void>((resolve) => {
    if (lease.signal.aborted) resolve();
    else lease.signal.addEventListener('abort', () => resolve());
  });
const untilStopped = async (_: TestClaim, lease: TestLease) => {
  await aborted(lease);
  lease.hold();
};
/** Claims as a process that is killed at once does. */
const claimAndDie = async () =>
  (await kindOf(finish).claim(app.db, { limit: 1, nodeId: newId(), leaseSeconds: 1 }))[0]!;
/** Takes a claim away, as another process does after the lease. */
const steal = (id: string) =>
  sql`update test_work set claim_token = gen_random_uuid(), attempts = attempts + 1,
    lease_until = clock_timestamp() + interval '1 minute' where id = ${id}`.execute(app.db);

describe('claims', () => {
  test('several loops carry each item out once, none more of them at a time than it has slots', async () => {
    const runs: string[] = [];
    const most = [0, 0, 0];
    const at = [0, 0, 0];
    const ids = await makeItems(app.db, 60);
    for (const worker of most.keys())
      begin(async (claim) => {
        most[worker] = Math.max(most[worker]!, ++at[worker]!);
        runs.push(claim.id);
        await sleep(2);
        await finish(claim);
        at[worker]!--;
      });
    await expect.poll(() => countEnded(app.db, ids)).toBe(60);
    expect(runs.toSorted()).toEqual(ids.toSorted());
    expect(Math.max(...most)).toBeLessThanOrEqual(4);
  });

  test('an item whose process is gone is taken over when its lease ends, not before', async () => {
    const [id] = await makeItems(app.db, 1);
    const dead = await claimAndDie();
    let takenAt: Date | undefined;
    begin(async (claim) => {
      takenAt = (await sql<{ at: Date }>`select clock_timestamp() as at`.execute(app.db)).rows[0]!.at;
      await finish(claim);
    });
    await expect.poll(() => countEnded(app.db, [id!])).toBe(1);
    const lease = (dead as unknown as { lease_until: Date }).lease_until;
    expect(takenAt!.getTime()).toBeGreaterThanOrEqual(lease.getTime());
    expect(await itemOf(app.db, id!)).toMatchObject({ attempts: 2, outcome: 'SUCCESS' });
  });

  test('a row that another transaction has locked holds up neither the claims nor the renewals of others', async () => {
    const [locked, free] = await makeItems(app.db, 2);
    const leases = new Map<string, TestLease>();
    begin(async (claim, lease) => {
      leases.set(claim.id, lease);
      await untilStopped(claim, lease);
    });
    await expect.poll(() => leases.size).toBe(2);
    await app.db.transaction().execute(async (transaction) => {
      await sql`select from test_work where id = ${locked!} for update`.execute(transaction);
      const later = await makeItems(app.db, 1);
      await expect.poll(() => leases.has(later[0]!)).toBe(true);
      await expect.poll(() => leases.get(locked!)!.reason).toBe('lost');
      expect(leases.get(free!)!.reason).toBeUndefined();
    });
  });

  test('a message on the channel of a kind begins an item at once', async () => {
    const loop = begin(finish, { pollMs: 60_000, channel: 'test_work' });
    const listener = listenForWork(app.databaseConfig, [loop], app.platform);
    try {
      await listener.ready;
      const ids = await makeItems(app.db, 1);
      app.platform.notify('test_work');
      await expect.poll(() => countEnded(app.db, ids)).toBe(1);
    } finally {
      await listener.close();
    }
  });

  test('items are claimed although what prepares them fails', async () => {
    const ids = await makeItems(app.db, 1);
    begin(finish, { prepare: () => Promise.reject(new Error('No.')) });
    await expect.poll(() => countEnded(app.db, ids)).toBe(1);
  });
});

describe('leases', () => {
  test('an item that takes longer than a lease stays with its process, whose look hangs meanwhile', async () => {
    const [id] = await makeItems(app.db, 1);
    let runs = 0;
    const hangs = Promise.withResolvers<void>();
    const isRunning = Promise.withResolvers<void>();
    const run = async (claim: TestClaim, lease: TestLease) => {
      runs++;
      isRunning.resolve();
      await sleep(2_500);
      lease.hold();
      await finish(claim);
    };
    begin(run, { prepare: () => (runs === 0 ? Promise.resolve() : hangs.promise) });
    await isRunning.promise;
    begin(run);
    await expect.poll(() => countEnded(app.db, [id!])).toBe(1);
    hangs.resolve();
    expect(runs).toBe(1);
  });

  test('a process whose clock went on without it does nothing more, before any of its timers has fired', async () => {
    const [id] = await makeItems(app.db, 1);
    const found = Promise.withResolvers<unknown>();
    begin(
      async (_, lease) => {
        lease.hold();
        const now = performance.now();
        const clock = vi.spyOn(performance, 'now').mockReturnValue(now + 700);
        try {
          lease.hold();
          found.resolve(undefined);
        } catch (error) {
          found.resolve(error);
          throw error;
        } finally {
          clock.mockRestore();
        }
      },
      { pollMs: 60_000 },
    );
    expect(await found.promise).toBeInstanceOf(ClaimLost);
    expect(await itemOf(app.db, id!)).toMatchObject({ status: 'RUNNING' });
  });

  test('a reason of the kind that a renewal finds ends the item', async () => {
    const [id] = await makeItems(app.db, 1);
    const found = Promise.withResolvers<unknown>();
    const loop = begin(async (claim, lease) => {
      found.resolve(await untilStopped(claim, lease).catch((error: unknown) => error));
      await finish(claim);
    });
    await expect.poll(async () => (await itemOf(app.db, id!)).status).toBe('RUNNING');
    await sql`update test_work set cancel = true`.execute(app.db);
    loop.renew();
    const error = await found.promise;
    expect(error).toBeInstanceOf(WorkStopped);
    expect((error as WorkStopped).reason).toBe('cancel');
  });

  const STATEMENTS = ['the first write', 'the second write', 'the renewal', 'the end', 'the give-back'] as const;
  test.each(STATEMENTS)('an attempt that loses its claim before %s changes nothing from then on', async (stolenAt) => {
    const [id] = await makeItems(app.db, 1);
    const isStolen = Promise.withResolvers<TestClaim>();
    let after: unknown;
    const before = async (statement: (typeof STATEMENTS)[number], claim: TestClaim) => {
      if (statement !== stolenAt || after) return;
      await steal(id!);
      after = await itemOf(app.db, id!);
      isStolen.resolve(claim);
    };
    const loop = begin(
      async (claim, lease) => {
        await before('the first write', claim);
        await TEST_TABLE.write(app.db, claim, { error: 'first' });
        await before('the second write', claim);
        await TEST_TABLE.write(app.db, claim, { error: 'second' });
        if (stolenAt === 'the renewal') {
          await before('the renewal', claim);
          loop.renew();
          await untilStopped(claim, lease);
        }
        if (stolenAt === 'the give-back') throw new Error('It failed.');
        await before('the end', claim);
        await finish(claim);
      },
      {
        giveBack: async (db, claim, stoppedBy) => {
          await before('the give-back', claim);
          return TEST_TABLE.giveBack(db, claim, stoppedBy, 1);
        },
      },
    );
    const claim = await isStolen.promise;
    await loop.stop();
    expect(await itemOf(app.db, id!)).toEqual(after);
    await expect(finish(claim)).rejects.toThrow(ClaimLost);
  });
});

describe('attempts', () => {
  test('one that fails counts and rests, and after the most of them the item ends in a failure', async () => {
    const [id] = await makeItems(app.db, 1);
    const at: number[] = [];
    begin(
      async () => {
        at.push(performance.now());
        throw new Error('It fails.');
      },
      { leaseSeconds: 0.6 },
    );
    await expect.poll(() => countEnded(app.db, [id!])).toBe(1);
    expect(await itemOf(app.db, id!)).toMatchObject({ outcome: 'ERROR', attempts: 4, claim_token: null });
    expect(at).toHaveLength(3);
    expect(at[1]! - at[0]!).toBeGreaterThan(500);
  });

  test('one that is stopped in order, or meets a database that is away, does not count', async () => {
    const [id] = await makeItems(app.db, 1);
    let runs = 0;
    const cause = Object.assign(new Error('terminating connection'), { code: '57P01' });
    const first = begin(async (claim, lease) => {
      if (++runs < 6) throw new Error('Behind an error of the engine.', { cause });
      await untilStopped(claim, lease);
    });
    await expect.poll(() => runs).toBe(6);
    expect(await itemOf(app.db, id!)).toMatchObject({ attempts: 1 });
    await first.stop();
    expect(await itemOf(app.db, id!)).toMatchObject({ attempts: 0, claim_token: null, lease_until: null });
    begin(finish);
    await expect.poll(() => countEnded(app.db, [id!])).toBe(1);
  });

  test('two at one subject do not run beside each other in one process', async () => {
    const [id] = await makeItems(app.db, 1);
    const ends = Promise.withResolvers<void>();
    let [running, most, runs] = [0, 0, 0];
    const loop = begin(
      async (claim) => {
        most = Math.max(most, ++running);
        if (++runs === 1) await ends.promise;
        running--;
        await finish(claim);
      },
      { subject: ({ id: item }) => item },
    );
    await expect.poll(() => runs).toBe(1);
    loop.loseAll();
    await sql`update test_work set lease_until = 'epoch', claim_token = null where id = ${id!}`.execute(app.db);
    await expect.poll(async () => (await itemOf(app.db, id!)).attempts).toBe(2);
    expect(runs).toBe(1);
    ends.resolve();
    await expect.poll(() => countEnded(app.db, [id!])).toBe(1);
    expect([most, runs]).toEqual([1, 2]);
  });
});

describe('a stop', () => {
  test('while items are being claimed gives them back unbegun', async () => {
    const [id] = await makeItems(app.db, 1);
    const [isClaimed, goesOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let runs = 0;
    const { claim } = kindOf(finish);
    const loop = begin(async () => void runs++, {
      claim: async (...asked) => {
        const claims = await claim(...asked);
        isClaimed.resolve();
        await goesOn.promise;
        return claims;
      },
    });
    await isClaimed.promise;
    const stopped = loop.stop();
    goesOn.resolve();
    await stopped;
    expect(runs).toBe(0);
    expect(await itemOf(app.db, id!)).toMatchObject({ attempts: 0, claim_token: null, lease_until: null });
  });

  test('renews the leases until the last run has returned', async () => {
    const [id] = await makeItems(app.db, 1);
    const isRunning = Promise.withResolvers<void>();
    const loop = begin(async (claim) => {
      isRunning.resolve();
      await sleep(1_800);
      await finish(claim);
    });
    await isRunning.promise;
    let others = 0;
    begin(async () => void others++);
    await loop.stop();
    expect(await itemOf(app.db, id!)).toMatchObject({ status: 'ENDED', attempts: 1 });
    expect(others).toBe(0);
  });

  test('leaves a run behind that ignores its signal, and others take its item over', async () => {
    const [id] = await makeItems(app.db, 1);
    const ends = Promise.withResolvers<void>();
    const isRunning = Promise.withResolvers<TestLease>();
    const late = Promise.withResolvers<unknown>();
    const loop = begin(
      async (claim, lease) => {
        isRunning.resolve(lease);
        await ends.promise;
        late.resolve(await finish(claim).catch((error: unknown) => error));
      },
      { stopMs: 300 },
    );
    await isRunning.promise;
    await loop.stop();
    begin(finish);
    await expect.poll(() => countEnded(app.db, [id!])).toBe(1);
    ends.resolve();
    expect(await late.promise).toBeInstanceOf(ClaimLost);
  });

  test('ends although the database does not answer the claim', async () => {
    const answers = Promise.withResolvers<TestClaim[]>();
    const isAsked = Promise.withResolvers<void>();
    const loop = begin(finish, { stopMs: 200, claim: () => (isAsked.resolve(), answers.promise) });
    await isAsked.promise;
    await loop.stop();
    answers.resolve([]);
  });
});

test('the figures of a kind tell what waits, runs, is oldest, was begun again and failed last', async () => {
  const [first, second, third, fourth] = await makeItems(app.db, 4);
  await sql`update test_work set created_at = created_at + case id when ${first!} then interval '0' else interval '1 second' end`.execute(
    app.db,
  );
  const oldest = (
    await sql<{ created_at: Date }>`select created_at from test_work where id = ${first!}`.execute(app.db)
  ).rows[0]!;
  await sql`update test_work set status = 'RUNNING', attempts = 2, claim_token = gen_random_uuid(),
    lease_until = clock_timestamp() + interval '1 minute' where id = ${second!}`.execute(app.db);
  await sql`update test_work set status = 'RUNNING', attempts = 3, lease_until = 'epoch' where id = ${third!}`.execute(
    app.db,
  );
  await sql`update test_work set status = 'ENDED', outcome = 'ERROR', error = 'It broke.', ended_at = clock_timestamp()
    where id = ${fourth!}`.execute(app.db);
  expect(await TEST_TABLE.status(app.db)).toEqual({
    waiting: 2,
    running: 1,
    oldestWaiting: oldest.created_at,
    retried: 2,
    lastFailure: { at: expect.any(Date), error: 'It broke.' },
  });
});
