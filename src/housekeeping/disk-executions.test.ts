import { afterEach, describe, expect, test } from 'vitest';
import { sql } from '#platform/database/index.ts';
import { itemOf, makeGuard, MIB, runningTask } from '#housekeeping/disk.fixture.ts';
import { executionsOf, makeJob, order, type TestJob } from '#services/kinds/job/job.fixture.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { useEngine } from '#test/harness/engine.ts';

const app = useApp({
  QUARTERDECK_INSTANCE_DISK_LIMIT_MB: '100',
  QUARTERDECK_ORGANIZATION_DISK_LIMIT_MB: '1000',
});
const engine = useEngine(app);
const ENDLESS = { seconds: null };

afterEach(() => {
  engine.runtime.disk = [];
});

describe('a run of a job that writes more than an instance may', () => {
  test('is ended, and status and events say why', async () => {
    const admin = await app.organization();
    const job = await makeJob(admin);
    order(engine, job, ENDLESS);
    const deployed = admin.post(`${job.url}/deploy?wait=30`);
    const name = await runningTask(engine, job.id);
    const guarded = await makeGuard(app, engine);
    engine.runtime.disk = [itemOf(job.id, { name, bytes: 99 * MIB })];
    await guarded.guard.round();
    expect(engine.runtime.calls.filter(({ verb }) => verb === 'removeTasks')).toEqual([]);

    engine.runtime.disk = [itemOf(job.id, { name, bytes: 200 * MIB })];
    await guarded.guard.round();
    expect(ok(await deployed, 200)).toMatchObject({
      state: 'DEPLOYMENT_ERROR',
      error: { code: 'EXECUTION_FAILED', message: expect.stringContaining('warnings') },
    });
    const message = `The execution ${name} was ended: it wrote 200 MiB besides its volumes, more than the 100 MiB that the operator allows. Write what is to be kept, and what is large, into storage.`;
    expect(ok(await admin.get(`${job.url}/status`), 200).warnings).toMatchObject([
      { code: 'INSTANCE_DISK_LIMIT', message },
    ]);
    const { events } = ok(await admin.get(`/organization/${admin.organizationId}/events?eventType=MAINTENANCE`), 200);
    expect(events).toMatchObject([{ target_id: job.id, triggered_by: 'quarterdeck disk limit' }]);
    expect(await guarded.endedExecutions()).toBe(1);
  });
});

describe('an organization above its limit', () => {
  const REFUSED =
    /^The organization takes 1100 MiB of disk on this machine \(volumes 1100 MiB.*\), more than the 1000 MiB that the operator allows\./;

  /** Fills the disk of the organization of a job. */
  async function fill({ id }: TestJob): Promise<void> {
    engine.runtime.disk = [itemOf(id, { kind: 'volume', name: 'data', bytes: 1100 * MIB })];
    const { guard } = await makeGuard(app, engine);
    await guard.round();
  }

  test('is refused the runs of a job with the reason, and a run that has begun goes on', async () => {
    const admin = await app.organization();
    const job = await makeJob(admin);
    const release = Promise.withResolvers<void>();
    engine.runtime.onTask(job.id, async () => (await release.promise, {}));
    const begun = admin.post(`${job.url}/deploy?wait=30`);
    await expect.poll(async () => (await executionsOf(job)).map(({ state }: any) => state)).toEqual(['RUNNING']);
    await fill(job);
    release.resolve();
    expect(ok(await begun, 200).state).toBe('DEPLOYED');

    expect(ok(await admin.post(`${job.url}/deploy?wait=30`), 200)).toMatchObject({
      state: 'DEPLOYMENT_ERROR',
      error: { code: 'DISK_LIMIT', step: 'EXECUTING', message: expect.stringMatching(REFUSED) },
    });
    expect(engine.runtime.tasksOf(job.id)).toHaveLength(1);
    expect((await executionsOf(job))[0]).toMatchObject({ state: 'FAILED', error: expect.stringMatching(REFUSED) });
  });

  test('is refused the scheduled runs of a job with the reason', async () => {
    const admin = await app.organization();
    const cronjob = { scheduled_at: '0 0 1 1 *', arguments: ['report'] };
    const job = await makeJob(admin, { schedule: { cronjob } });
    expect(ok(await admin.post(`${job.url}/deploy?wait=30`), 200).state).toBe('DEPLOYED');
    await fill(job);
    await engine.executions.look();
    await app.db
      .updateTable('cron_schedule')
      .set({ next_at: sql`now()` })
      .where('service_id', '=', job.id)
      .execute();
    await engine.executions.look();
    await expect
      .poll(() => executionsOf(job))
      .toMatchObject([{ event: 'CRON', state: 'FAILED', error: expect.stringMatching(REFUSED) }]);
    expect(engine.runtime.tasksOf(job.id)).toEqual([]);
  });

  test('may stop and delete a job that has commands for it', async () => {
    const admin = await app.organization();
    const command = { arguments: ['clean'] };
    const job = await makeJob(admin, { schedule: { on_start: {}, on_stop: command, on_delete: command } });
    expect(ok(await admin.post(`${job.url}/deploy?wait=30`), 200).state).toBe('DEPLOYED');
    await fill(job);
    expect(ok(await admin.post(`${job.url}/stop?wait=30`), 200).state).toBe('STOPPED');
    ok(await admin.delete(job.url), 204);
    await expect.poll(async () => (await admin.get(job.url)).status).toBe(404);
    expect(engine.runtime.tasksOf(job.id).map(({ name }) => name.split('-')[0])).toEqual(['start', 'stop', 'delete']);
  });
});
