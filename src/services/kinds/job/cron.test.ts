import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { createExecutionWorker } from '#app/engine.ts';
import { createSources } from '#app/git.ts';
import { newId } from '#kernel/ids.ts';
import { drainNode, undrainNode } from '#platform/installation/drain.ts';
import { sql } from '#platform/database/index.ts';
import { readSettings } from '#platform/settings/index.ts';
import type { Runtime } from '#runtimes/runtime.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { useEngine } from '#test/harness/engine.ts';
import { markAsFork } from '#test/harness/fork.ts';
import { deploy, executionsOf, logOf, makeJob, order, type TestJob } from './job.fixture.ts';

const logged: string[] = [];
const app = useApp({ QUARTERDECK_LOG_LEVEL: 'warn' }, {}, undefined, (line) => logged.push(line));
const engine = useEngine(app);

/** Creates and deploys a cron job that is not due for a long time. */
async function makeCron(admin: Actor, settings: Record<string, unknown> = {}, body: object = {}): Promise<TestJob> {
  const cronjob = { scheduled_at: '0 0 1 1 *', timezone: 'Europe/Paris', arguments: ['report'] };
  const job = await makeJob(admin, { schedule: { cronjob }, ...body });
  ok(await admin.put(`${job.url}/advancedSettings`, settings), 200);
  expect(await deploy(job)).toMatchObject({ state: 'DEPLOYED', service_deployment_status: 'UP_TO_DATE' });
  await engine.executions.look();
  return job;
}

/** Returns the next 31 December at a time in UTC. In time zones where it is New Year by then, a yearly schedule is due. */
function nextLastOfDecember(hour: number, minute = 0): Date {
  const ofYear = (year: number) => new Date(Date.UTC(year, 11, 31, hour, minute));
  const year = new Date().getUTCFullYear();
  return ofYear(year) > new Date() ? ofYear(year) : ofYear(year + 1);
}

const scheduleOf = ({ id }: TestJob) =>
  app.db.selectFrom('cron_schedule').selectAll().where('service_id', '=', id).executeTakeFirst();

/** Makes the job due since some minutes. */
async function makeDue({ id }: TestJob, minutes = 1): Promise<void> {
  await engine.executions.look();
  const changed = await app.db
    .updateTable('cron_schedule')
    .set({ next_at: sql`date_trunc('milliseconds', now()) - make_interval(mins => ${minutes})` })
    .where('service_id', '=', id)
    .executeTakeFirst();
  expect(changed.numUpdatedRows).toBe(1n);
}

/** Makes the job due now, without a look of any worker. */
const dueNow = ({ id }: TestJob) =>
  app.db
    .updateTable('cron_schedule')
    .set({ next_at: sql`now()` })
    .where('service_id', '=', id)
    .execute();

const statesOf = async (job: TestJob): Promise<string[]> => (await executionsOf(job)).map((one: any) => one.state);

/** Waits until `count` executions of a job have ended, and returns all of them. */
async function ended(job: TestJob, count: number): Promise<any[]> {
  await expect
    .poll(async () => (await statesOf(job)).filter((state) => !/WAITING|RUNNING/.test(state)).length, {
      timeout: 15_000,
    })
    .toBe(count);
  return executionsOf(job);
}

const running = (job: TestJob, count: number) =>
  expect.poll(async () => (await statesOf(job)).filter((state) => state === 'RUNNING').length).toBe(count);

describe('a cron job', () => {
  test('is deployed without being run, and is run when it is due, with the values of then', async () => {
    const admin = await app.organization();
    const job = await makeCron(admin);
    expect(engine.runtime.tasksOf(job.id)).toEqual([]);
    expect((await scheduleOf(job))!.next_at).toEqual(nextLastOfDecember(23));
    const secret = ok(await admin.post(`${job.url}/secret`, { key: 'TOKEN', value: 'never-told' }), 201);
    await deploy(job);
    // What was changed since is of the next release.
    ok(await admin.put(`${job.url}/secret/${secret.id}`, { key: 'TOKEN', value: 'changed-since' }), 200);
    ok(await admin.put(job.url, { cpu: 250 }), 200);
    order(engine, job, { lines: ['begins with never-told', 'ends'] });
    await makeDue(job);
    const [execution] = await ended(job, 1);
    expect(execution).toMatchObject({
      event: 'CRON',
      state: 'SUCCEEDED',
      attempts: 1,
      exit_code: 0,
      deployment_request_id: null,
    });
    expect(execution.scheduled_at <= execution.started_at).toBe(true);
    expect(await logOf(job, execution.id)).toEqual(['begins with ***', 'ends']);
    const [spec] = engine.runtime.tasksOf(job.id);
    expect(spec).toMatchObject({ arguments: ['report'], resources: { cpuMilli: 500 }, outputPath: null });
    expect(spec!.environment).toMatchObject({ TOKEN: 'never-told' });
    expect(ok(await admin.get(`${job.url}/status`), 200)).toMatchObject({
      state: 'DEPLOYED',
      service_deployment_status: 'OUT_OF_DATE',
    });
  });

  // docs/decisions/0113-a-fork-runs-what-was-approved-and-sees-no-secret.md
  test('gets no secret where the code of a fork runs', async () => {
    const admin = await app.organization();
    const job = await makeCron(admin);
    ok(await admin.post(`${job.url}/secret`, { key: 'TOKEN', value: 'never-told' }), 201);
    ok(await admin.post(`${job.url}/environmentVariable`, { key: 'PLAIN', value: 'told' }), 201);
    await deploy(job);
    await markAsFork(app.db, job.environmentId);
    await makeDue(job);
    expect(await ended(job, 1)).toMatchObject([{ state: 'SUCCEEDED' }]);
    const [spec] = engine.runtime.tasksOf(job.id);
    expect(spec!.environment).toMatchObject({ PLAIN: 'told' });
    expect(JSON.stringify(spec)).not.toContain('never-told');
  });

  // docs/decisions/0030-rights-hold-when-something-takes-effect.md
  test.each([
    ['stop', (admin: Actor, { url }: TestJob) => admin.post(`${url}/stop?wait=30`)],
    ['deletion', (admin: Actor, { url }: TestJob) => admin.delete(url)],
  ])(
    'belongs to the deployed service: its maker’s loss of all rights ends nothing, its %s ends it',
    async (_what, end) => {
      const admin = await app.organization();
      const maker = await admin.withScope('WRITE');
      const job = await makeCron(maker);
      const { role_id } = await app.db
        .selectFrom('member')
        .select('role_id')
        .where('organization_id', '=', admin.organizationId)
        .executeTakeFirstOrThrow();
      const setRole = (id: string) =>
        app.db.updateTable('member').set({ role_id: id }).where('organization_id', '=', admin.organizationId).execute();
      const roles = ok(await admin.get(`/organization/${admin.organizationId}/availableRole`), 200).results;
      await setRole(roles.find(({ name }: { name: string }) => name === 'viewer').id);
      await app.db
        .deleteFrom('api_token')
        .where('organization_id', '=', admin.organizationId)
        .where('scope', '=', 'WRITE')
        .execute();
      ok(await maker.get(job.url), 401);
      ok(await admin.post(`${job.url}/stop`), 403);
      await makeDue(job);
      expect(await ended({ ...job, admin }, 1)).toMatchObject([{ event: 'CRON', state: 'SUCCEEDED' }]);
      await setRole(role_id);
      expect((await end(admin, job)).status).toBeLessThan(300);
      await expect.poll(async () => (await engine.executions.look(), scheduleOf(job))).toBeUndefined();
    },
  );

  test('that was missed many times is run once, and goes on from now', async () => {
    const admin = await app.organization();
    const job = await makeCron(admin, {}, { schedule: { cronjob: { scheduled_at: '0 * * * *' } } });
    await makeDue(job, 6_000);
    await ended(job, 1);
    await engine.executions.look();
    expect(await executionsOf(job)).toHaveLength(1);
    const { next_at } = (await scheduleOf(job))!;
    expect(next_at!.getTime() - Date.now()).toBeGreaterThan(-1_000);
    expect(next_at!.getTime() - Date.now()).toBeLessThanOrEqual(3_600_000);
  });

  test('is run once for each time it is due, by however many workers', async () => {
    const admin = await app.organization();
    const job = await makeCron(admin);
    const others = await Promise.all([1, 2, 3].map(() => makeWorker()));
    await makeDue(job);
    await Promise.all([engine.executions, ...others].map((worker) => worker.look()));
    await ended(job, 1);
    await Promise.all([engine.executions, ...others].map((worker) => worker.look()));
    await Promise.all(others.map((worker) => worker.stop()));
    expect(await executionsOf(job)).toHaveLength(1);
    expect(engine.runtime.tasksOf(job.id)).toHaveLength(1);
  });

  test('runs nothing once it is stopped or uninstalled, and again once it is deployed', async () => {
    const admin = await app.organization();
    const job = await makeCron(admin);
    for (const call of ['stop', 'uninstall']) {
      ok(await admin.post(`${job.url}/${call}?wait=30`), 200);
      await engine.executions.look();
      expect(await scheduleOf(job)).toBeUndefined();
      expect(await deploy(job)).toMatchObject({ state: 'DEPLOYED' });
      await makeDue(job);
      await ended(job, call === 'stop' ? 1 : 2);
    }
  });

  test('that runs while it is stopped is ended', async () => {
    const admin = await app.organization();
    const job = await makeCron(admin);
    order(engine, job, { seconds: null });
    await makeDue(job);
    await running(job, 1);
    ok(await admin.post(`${job.url}/stop?wait=30`), 200);
    expect(await ended(job, 1)).toMatchObject([{ state: 'CANCELED', error: expect.stringContaining('stopped') }]);
  });

  test('that runs while it is deleted is gone with all of it', async () => {
    const admin = await app.organization();
    const job = await makeCron(admin);
    order(engine, job, { seconds: null });
    await makeDue(job);
    await running(job, 1);
    ok(await admin.delete(job.url), 204);
    await expect.poll(async () => (await admin.get(job.url)).status).toBe(404);
    expect(engine.runtime.leftovers({ serviceId: job.id } as never)).toEqual([]);
  });

  test('waits while its cluster is locked, and is run once after that', async () => {
    const admin = await app.organization();
    const job = await makeCron(admin);
    const [cluster] = ok(await admin.get(`/organization/${admin.organizationId}/cluster`), 200).results;
    ok(await admin.post(`/cluster/${cluster.id}/lock`, { reason: 'upgrade', ttl_in_days: 1 }), 200);
    await makeDue(job);
    await engine.executions.look();
    expect(await executionsOf(job)).toEqual([]);
    ok(await admin.delete(`/cluster/${cluster.id}/lock`), 204);
    await ended(job, 1);
  });

  test('waits while its node is drained, and is run once after that', async () => {
    const admin = await app.organization();
    const job = await makeCron(admin);
    await drainNode(app.db, 'test');
    onTestFinished(async () => void (await undrainNode(app.db, 'test')));
    for (let time = 0; time < 2; time++) {
      await makeDue(job);
      await engine.executions.look();
      expect(await statesOf(job)).toEqual(['WAITING']);
    }
    await undrainNode(app.db, 'test');
    await engine.executions.look();
    await ended(job, 1);
  });

  test('is tried again as often as it may, and what failed last stays in the runtime to be looked at', async () => {
    const admin = await app.organization();
    const job = await makeCron(admin, { 'cronjob.failed_jobs_history_limit': 1 }, { max_nb_restart: 1 });
    order(engine, job, { exitCode: 3 });
    for (const count of [1, 2]) {
      await makeDue(job);
      const [newest] = await ended(job, count);
      expect(newest).toMatchObject({ state: 'FAILED', attempts: 2, exit_code: 3 });
    }
    await engine.executions.sweep();
    const left = engine.runtime.leftovers({ serviceId: job.id } as never).filter((one) => one.includes('cron'));
    expect(left).toHaveLength(2);
    const names = ok(await admin.post(`${job.url}/cleanFailedJob`), 200).clean_kubernetes_jobs;
    expect(names).toEqual([expect.stringMatching(/^cron-[0-9a-f]{20}-1$/), expect.stringMatching(/-2$/)]);
  });

  test('keeps its times where the next release has the same ones, and has new ones where they are others', async () => {
    const admin = await app.organization();
    const job = await makeCron(admin);
    await app.db
      .updateTable('cron_schedule')
      .set({ next_at: new Date('2040-01-01T00:00:00Z') })
      .where('service_id', '=', job.id)
      .execute();
    await deploy(job);
    await engine.executions.look();
    expect((await scheduleOf(job))!.next_at!.toISOString()).toBe('2040-01-01T00:00:00.000Z');
    ok(
      await admin.put(job.url, { schedule: { cronjob: { scheduled_at: '30 2 1 1 *', timezone: 'Asia/Tokyo' } } }),
      200,
    );
    await deploy(job);
    await engine.executions.look();
    expect((await scheduleOf(job))!.next_at).toEqual(nextLastOfDecember(17, 30));
    ok(await admin.put(job.url, { schedule: { on_start: {} } }), 200);
    await deploy(job);
    await engine.executions.look();
    expect((await scheduleOf(job))!.next_at).toBeNull();
  });
});

describe('a time that comes while the last run goes on', () => {
  test('is left out where runs are forbidden to run side by side', async () => {
    const admin = await app.organization();
    const job = await makeCron(admin, { 'cronjob.concurrency_policy': 'Forbid' });
    const release = Promise.withResolvers<void>();
    engine.runtime.onTask(job.id, async () => (await release.promise, {}));
    await makeDue(job);
    await running(job, 1);
    await makeDue(job);
    await engine.executions.look();
    await engine.executions.look();
    expect(await statesOf(job)).toEqual(['RUNNING']);
    release.resolve();
    expect(await ended(job, 1)).toMatchObject([{ state: 'SUCCEEDED' }]);
  });

  test('is run beside it where that is allowed', async () => {
    const admin = await app.organization();
    const job = await makeCron(admin, { 'cronjob.concurrency_policy': 'Allow' });
    const release = Promise.withResolvers<void>();
    engine.runtime.onTask(job.id, async () => (await release.promise, {}));
    await makeDue(job, 2);
    await running(job, 1);
    await makeDue(job);
    await running(job, 2);
    release.resolve();
    expect(await ended(job, 2)).toMatchObject([{ state: 'SUCCEEDED' }, { state: 'SUCCEEDED' }]);
  });

  test('ends it and is run in its place where it replaces it', async () => {
    const admin = await app.organization();
    const job = await makeCron(admin, { 'cronjob.concurrency_policy': 'Replace' });
    order(engine, job, { seconds: null, lines: ['first'] }, {});
    await makeDue(job, 2);
    await running(job, 1);
    await makeDue(job);
    const [second, first] = await ended(job, 2);
    expect(first).toMatchObject({ state: 'CANCELED', error: expect.stringContaining('replaced') });
    expect(second.state).toBe('SUCCEEDED');
    expect(second.started_at >= first.ended_at).toBe(true);
  });
});

/** Sets a shorter limit than the settings allow, as tests wait for it. */
const limitSteps = (seconds: number): void => void (app.platform.settings.stepProgressSeconds = seconds);
const { stepProgressSeconds: USUAL } = readSettings({});
afterEach(() => {
  limitSteps(USUAL);
  engine.runtime.faults = {};
});

async function makeWorker({ runtimeOf = async (): Promise<Runtime> => engine.runtime, epoch = 1 } = {}) {
  const node = newId();
  await app.db
    .insertInto('node')
    .values({ id: node, name: `test ${node}` })
    .execute();
  const base = {
    settings: app.platform.settings,
    platform: app.platform,
    engineDatabase: app.database,
    directConfig: app.databaseConfig,
    nodeId: node,
    installation: { id: app.installationId, epoch },
  };
  return createExecutionWorker(base, { runtimeOf }, createSources(app.platform));
}

describe('a run whose worker goes', () => {
  test.each([
    ['by the next worker', 1],
    ['by a worker after a failover of the database, which raises the epoch', 2],
  ])('goes on, and is taken over with all of its log %s', async (_who, epoch) => {
    const admin = await app.organization();
    const job = await makeCron(admin);
    await engine.executions.stop();
    const first = await makeWorker();
    order(engine, job, { seconds: 6, lines: ['early', { text: 'late', afterMs: 5_500 }] });
    await dueNow(job);
    await first.look();
    await running(job, 1);
    await expect.poll(() => engine.runtime.tasksOf(job.id).length).toBe(1);
    await first.stop();
    expect(await statesOf(job)).toEqual(['RUNNING']);
    await app.db.updateTable('installation').set({ epoch }).execute();
    const second = await makeWorker({ epoch });
    second.start();
    const [execution] = await ended(job, 1);
    await second.stop();
    expect(execution).toMatchObject({ state: 'SUCCEEDED', attempts: 1 });
    expect(engine.runtime.tasksOf(job.id)).toHaveLength(1);
    const lines = (await logOf(job, execution.id)).filter((line) => !line.includes('taken over'));
    expect(lines).toEqual(['early', 'late']);
    engine.executions = await makeWorker();
    engine.executions.start();
  });

  test('that lost its lease leaves no trace, and does not end what its successor follows', async () => {
    const admin = await app.organization();
    const job = await makeCron(admin);
    await engine.executions.stop();
    const [frozen, next] = [await makeWorker(), await makeWorker()];
    order(engine, job, { seconds: 3, lines: ['one line'] });
    await dueNow(job);
    await frozen.look();
    await running(job, 1);
    await expect.poll(() => engine.runtime.tasksOf(job.id).length).toBe(1);
    // As if it had not renewed for long.
    await app.db
      .updateTable('job_execution')
      .set({ lease_until: sql`now() - interval '1 second'` })
      .where('service_id', '=', job.id)
      .execute();
    await next.look();
    await frozen.look();
    await sleep(100);
    await frozen.stop();
    next.start();
    expect(await ended(job, 1)).toMatchObject([{ state: 'SUCCEEDED', attempts: 1 }]);
    await next.stop();
    expect(engine.runtime.tasksOf(job.id)).toHaveLength(1);
    engine.executions = await makeWorker();
    engine.executions.start();
  });
});

/** Marks the claim as lost, as if the worker was killed; `pickups` is the number of workers that have claimed it so far. */
const killWorker = (job: TestJob, pickups?: number) =>
  app.db
    .updateTable('job_execution')
    .set({
      lease_until: sql`now() - interval '1 second'`,
      claim_token: newId(),
      ...(pickups === undefined ? {} : { pickups }),
    })
    .where('service_id', '=', job.id)
    .execute();

const pickupsOf = async (job: TestJob) =>
  (
    await app.db
      .selectFrom('job_execution')
      .select('pickups')
      .where('service_id', '=', job.id)
      .executeTakeFirstOrThrow()
  ).pickups;

describe('a run that loses one worker after the other', () => {
  test('goes on for as long as workers get on with it, and no other run begins beside it', async () => {
    limitSteps(3);
    const admin = await app.organization();
    const job = await makeCron(admin, { 'cronjob.concurrency_policy': 'Forbid' });
    const release = Promise.withResolvers<void>();
    engine.runtime.onTask(job.id, async () => (await release.promise, {}));
    await makeDue(job);
    await running(job, 1);
    await killWorker(job, 4);
    await expect.poll(() => pickupsOf(job)).toBe(5);
    await expect.poll(() => pickupsOf(job)).toBe(0);
    await killWorker(job);
    await expect.poll(() => pickupsOf(job)).toBe(1);
    await makeDue(job);
    await engine.executions.look();
    expect(await statesOf(job)).toEqual(['RUNNING']);
    release.resolve();
    expect(await ended(job, 1)).toMatchObject([{ state: 'SUCCEEDED', attempts: 1 }]);
    expect(engine.runtime.tasksOf(job.id)).toHaveLength(1);
  });

  test('is given up where none gets on with it, and does not run any more then', async () => {
    const admin = await app.organization();
    const job = await makeCron(admin, { 'cronjob.concurrency_policy': 'Forbid' });
    order(engine, job, { seconds: null });
    await makeDue(job);
    await running(job, 1);
    await expect.poll(() => engine.runtime.tasksOf(job.id).length).toBe(1);
    await killWorker(job, 5);
    const [execution] = await ended(job, 1);
    expect(execution).toMatchObject({ state: 'FAILED', error: expect.stringContaining('after 5 attempts') });
    const left = engine.runtime.leftovers({ serviceId: job.id } as never).filter((one) => one.includes('cron'));
    expect(left).toEqual([]);
  });

  test('is not taken to get on because a worker followed it for some seconds', async () => {
    const admin = await app.organization();
    const job = await makeCron(admin);
    order(engine, job, { seconds: 5 });
    await makeDue(job);
    await running(job, 1);
    await expect.poll(() => engine.runtime.tasksOf(job.id).length).toBe(1);
    await killWorker(job, 2);
    await expect.poll(() => pickupsOf(job), { timeout: 15_000 }).toBe(3);
    expect(await ended(job, 1)).toMatchObject([{ state: 'SUCCEEDED' }]);
    expect(await pickupsOf(job)).toBe(3);
  });
});

describe('a runtime that does not answer', () => {
  const warned = (text: string, since: number) =>
    expect.poll(() => logged.slice(since).join('\n'), { timeout: 60_000 }).toContain(text);

  test('fails a run that was to begin, after a while', async () => {
    const admin = await app.organization();
    const job = await makeCron(admin);
    await engine.executions.stop();
    const worker = await makeWorker({ runtimeOf: () => new Promise(() => undefined) });
    onTestFinished(async () => {
      await worker.stop();
      engine.executions = await makeWorker();
      engine.executions.start();
    });
    await dueNow(job);
    limitSteps(2);
    worker.start();
    await expect.poll(() => statesOf(job), { timeout: 60_000 }).toEqual(['FAILED']);
    const error = 'What it needs was not there within 2 seconds.';
    expect(await executionsOf(job)).toMatchObject([{ error }]);
  }, 90_000);

  test('keeps what may go on in it from being ended, and no worker from being stopped', async () => {
    const admin = await app.organization();
    const job = await makeCron(admin);
    order(engine, job, { seconds: null });
    await makeDue(job);
    await running(job, 1);
    await expect.poll(() => engine.runtime.tasksOf(job.id).length).toBe(1);
    limitSteps(2);
    engine.runtime.faults = { deaf: ['removeTasks'] };
    const since = logged.length;
    await killWorker(job, 5);
    await warned('The runtime did not answer within 2 seconds.', since);
    expect(await statesOf(job)).toEqual(['RUNNING']);
    await engine.executions.stop();
    engine.runtime.faults = {};
    engine.executions = await makeWorker();
    engine.executions.start();
    await killWorker(job, 5);
    expect(await ended(job, 1)).toMatchObject([{ state: 'FAILED', error: expect.stringContaining('Given up') }]);
  }, 90_000);

  test('leaves a run that it was told to end as it was, until it is known to have ended', async () => {
    const admin = await app.organization();
    const job = await makeCron(admin, { 'deployment.termination_grace_period_seconds': 1 });
    order(engine, job, { seconds: null });
    engine.runtime.faults = { deaf: ['run'] };
    await makeDue(job);
    await running(job, 1);
    await expect.poll(() => engine.runtime.calls.at(-1)).toMatchObject({ verb: 'run', serviceId: job.id });
    const since = logged.length;
    ok(await admin.post(`${job.url}/stop`), 200);
    await warned('It was told to end and did not', since);
    expect(await statesOf(job)).toEqual(['RUNNING']);
    engine.runtime.faults = {};
    await killWorker(job);
    expect(await ended(job, 1)).toMatchObject([{ state: 'CANCELED' }]);
  }, 120_000);
});

test('long runs of one organization leave room for those of others, over all workers', async () => {
  const [busy, other] = [await app.organization(), await app.organization()];
  const release = Promise.withResolvers<void>();
  const most = app.platform.settings.organizationSlots;
  const jobs: TestJob[] = [];
  for (let index = 0; index < most + 2; index++) jobs.push(await makeCron(busy));
  const quick = await makeCron(other);
  const workers = [await makeWorker(), await makeWorker()];
  for (const job of jobs) {
    engine.runtime.onTask(job.id, async () => (await release.promise, {}));
    await makeDue(job);
  }
  const count = async () =>
    (await Promise.all(jobs.map(statesOf))).flat().filter((state) => state === 'RUNNING').length;
  await expect.poll(count).toBe(most);
  await Promise.all([engine.executions, ...workers].map((worker) => worker.look()));
  expect(await count()).toBe(most);
  await makeDue(quick);
  expect(await ended(quick, 1)).toMatchObject([{ state: 'SUCCEEDED' }]);
  expect(await count()).toBe(most);
  release.resolve();
  for (const job of jobs) expect(await ended(job, 1)).toMatchObject([{ state: 'SUCCEEDED' }]);
  await Promise.all(workers.map((worker) => worker.stop()));
});

test('a deployment whose worker goes leaves what it executes running for the next one', async () => {
  const admin = await app.organization();
  const job = await makeJob(admin);
  order(engine, job, { seconds: 2, lines: ['begins'] });
  ok(await admin.post(`${job.url}/deploy`), 200);
  await expect.poll(() => engine.runtime.tasksOf(job.id).length).toBe(1);
  await engine.restart();
  await expect.poll(async () => ok(await admin.get(`${job.url}/status`), 200).state).toBe('DEPLOYED');
  expect(engine.runtime.tasksOf(job.id)).toHaveLength(1);
  expect(await executionsOf(job)).toMatchObject([{ state: 'SUCCEEDED', attempts: 1 }]);
});
