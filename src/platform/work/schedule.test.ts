import { afterEach, expect, test, vi } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import { Schedule, type RecurringTask, type ScheduleOptions } from '#platform/work/schedule.ts';
import { useApp } from '#test/harness/app.ts';

const app = useApp();
let schedules: Schedule[] = [];
afterEach(async () => {
  await Promise.all(schedules.map((schedule) => schedule.stop()));
  schedules = [];
  await app.db.deleteFrom('scheduled_task').execute();
});

async function beginWith(options: Partial<ScheduleOptions>, ...tasks: RecurringTask[]) {
  const schedule = new Schedule(tasks, { platform: app.platform, nodeId: newId(), ...options });
  schedules.push(schedule);
  await schedule.start();
  return schedule;
}
const begin = (...tasks: RecurringTask[]) => beginWith({}, ...tasks);
const rowOf = (name: string) =>
  app.db.selectFrom('scheduled_task').selectAll().where('name', '=', name).executeTakeFirstOrThrow();
const untilAborted = (signal: AbortSignal) => new Promise<void>((resolve) => (signal.onabort = () => resolve()));

test('a task that takes long keeps no other one waiting', async () => {
  let ran = 0;
  await begin(
    { name: 'long', everySeconds: 60, run: (_, signal) => untilAborted(signal) },
    ...['a', 'b', 'c', 'd', 'e'].map((name) => ({ name, everySeconds: 60, run: async () => void ran++ })),
  );
  await expect.poll(() => ran).toBe(5);
});

test('a task that does not end by its deadline is told so, and fails even if it does not heed that', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  let told: AbortSignal | undefined;
  const run = (_: unknown, signal: AbortSignal) => {
    told = signal;
    return promise;
  };
  await begin({ name: 'deaf', everySeconds: 60, deadlineSeconds: 0.05, graceSeconds: 0.05, run });
  await expect.poll(async () => (await rowOf('deaf')).last_error).toBe('It has not ended within 0.05 s.');
  expect(told!.aborted).toBe(true);
  expect((await rowOf('deaf')).lock_token).not.toBeNull();
  resolve();
  await expect.poll(async () => (await rowOf('deaf')).lock_token).toBeNull();
});

test('a task that needs a while to end after its deadline does not run beside itself', async () => {
  let [runs, running, most] = [0, 0, 0];
  const run = async (_: unknown, signal: AbortSignal) => {
    runs++;
    most = Math.max(most, ++running);
    await untilAborted(signal);
    for (let statements = 0; statements < 50; statements++) await sql`select 1`.execute(app.db);
    running--;
  };
  await begin({ name: 'slow', everySeconds: 0, deadlineSeconds: 0.05, run });
  await expect.poll(() => runs).toBeGreaterThan(2);
  expect(most).toBe(1);
  expect((await rowOf('slow')).last_error).toBe('It has not ended within 0.05 s.');
});

test('a task that another process has taken over meanwhile writes nothing over its end', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  let runs = 0;
  await begin({ name: 'slow', everySeconds: 60, run: () => (runs++, promise) });
  await expect.poll(() => runs).toBe(1);
  const token = '00000000-0000-4000-8000-000000000001';
  await sql`update scheduled_task set lock_token = ${token} where name = 'slow'`.execute(app.db);
  resolve();
  await Promise.all(schedules.map((schedule) => schedule.stop()));
  expect(await rowOf('slow')).toMatchObject({ lock_token: token, last_ended_at: null });
});

test('two processes run a task once', async () => {
  let runs = 0;
  const task = { name: 'one', everySeconds: 60, run: async () => void runs++ };
  await Promise.all([begin(task), begin(task)]);
  await expect.poll(async () => (await rowOf('one')).last_ended_at).not.toBeNull();
  await Promise.all(schedules.map((schedule) => schedule.stop()));
  expect(runs).toBe(1);
});

test('a task that takes longer than a lease stays with its process', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  let runs = 0;
  const task = { name: 'long', everySeconds: 60, run: () => (runs++, promise) };
  const options = { leaseSeconds: 1.5, pollMs: 20 };
  await beginWith(options, task);
  await expect.poll(() => runs).toBe(1);
  const { locked_until: claimed } = await rowOf('long');
  await beginWith(options, task);
  const isPast = sql<{
    past: boolean;
  }>`select clock_timestamp() > ${claimed}::timestamptz + interval '0.3 seconds' as past`;
  await expect.poll(async () => (await isPast.execute(app.db)).rows[0]!.past).toBe(true);
  resolve();
  await expect.poll(async () => (await rowOf('long')).last_ended_at).not.toBeNull();
  expect(runs).toBe(1);
});

test('a task whose process is gone is begun by another one when its lease ends', async () => {
  await sql`insert into scheduled_task (name, lock_token, locked_until)
    values ('left', ${newId()}, clock_timestamp() + interval '0.3 seconds')`.execute(app.db);
  const { locked_until: until } = await rowOf('left');
  let begun: Date | undefined;
  const run = async () =>
    void (begun = (await sql<{ at: Date }>`select clock_timestamp() as at`.execute(app.db)).rows[0]!.at);
  await beginWith({ pollMs: 20 }, { name: 'left', everySeconds: 60, run });
  await expect.poll(async () => (await rowOf('left')).last_ended_at).not.toBeNull();
  expect(begun!.getTime()).toBeGreaterThanOrEqual(until!.getTime());
});

test('a task that a stop breaks off has not failed, and another process begins it at once', async () => {
  let runs = 0;
  const run = async (_: unknown, signal: AbortSignal) => {
    if (++runs > 1) return;
    await untilAborted(signal);
    signal.throwIfAborted();
  };
  const task = { name: 'daily', everySeconds: 86_400, run };
  const first = await begin(task);
  await expect.poll(() => runs).toBe(1);
  await first.stop();
  expect(await rowOf('daily')).toMatchObject({
    lock_token: null,
    locked_until: null,
    last_error: null,
    last_ended_at: null,
  });
  await begin(task);
  await expect.poll(async () => (await rowOf('daily')).last_ended_at).not.toBeNull();
  expect(runs).toBe(2);
});

test('a process whose lease ended while it did nothing finds its task broken off', async () => {
  const found = Promise.withResolvers<boolean>();
  const run = async (_: unknown, signal: AbortSignal) => {
    const now = performance.now();
    const clock = vi.spyOn(performance, 'now').mockReturnValue(now + 25_000);
    found.resolve(signal.aborted);
    clock.mockRestore();
  };
  await begin({ name: 'frozen', everySeconds: 60, run });
  expect(await found.promise).toBe(true);
});
