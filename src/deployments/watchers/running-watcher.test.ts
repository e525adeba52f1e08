import { expect, test } from 'vitest';
import { RunningWatcher } from '#deployments/watchers/running-watcher.ts';
import { MACHINE_RECORDS } from '#clusters/machine-records.ts';
import { sql } from '#platform/database/index.ts';
import { START_AGAIN } from '#services/capabilities/service/rollback/index.ts';
import type { Handle } from '#runtimes/runtime.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { exampleBody, makeExample, useEngine } from '#test/harness/engine.ts';

const app = useApp();
const engine = useEngine(app);

/** Makes a watcher of the machine that all clusters are assigned to. */
async function watcher(observeMs?: number): Promise<RunningWatcher> {
  const { id } = await app.db.selectFrom('node').select('id').executeTakeFirstOrThrow();
  await app.db.updateTable('cluster').set({ node_id: id }).execute();
  return new RunningWatcher({
    platform: app.platform,
    runtimes: { runtimeOf: async () => engine.runtime },
    nodeId: id,
    machine: MACHINE_RECORDS,
    again: START_AGAIN,
    observeMs,
  });
}

test('what is gone from its place is brought back as it was released, and not as it was configured since', async () => {
  const admin = await app.organization();
  const { application } = await makeExample(admin);
  const url = `/application/${application.id}`;
  ok(await admin.post(`${url}/deploy?wait=40`), 200);
  ok(await admin.put(url, exampleBody({ cpu: 900 })), 200);
  const before = engine.runtime.specOf(application.id)!;
  const context = { signal: new AbortController().signal, log: () => undefined };
  await engine.runtime.remove({ ...before.identity, generation: before.identity.generation + 1 }, null, context);
  const looking = await watcher();
  await looking.look();
  await expect.poll(() => engine.runtime.specOf(application.id)?.resources.cpuMilli).toBe(500);
  await expect
    .poll(async () => ok(await admin.get(`${url}/status`), 200))
    .toMatchObject({ state: 'DEPLOYED', service_deployment_status: 'OUT_OF_DATE' });
});

test('a cluster is noted as reached when its runtime answers, and not when it does not', async () => {
  await app.organization();
  const looking = await watcher();
  const reached = async () =>
    (await sql<{ at: Date | null }>`select max(reached_at) as at from cluster`.execute(app.db)).rows[0]!.at;
  await app.db.updateTable('cluster').set({ reached_at: null }).execute();
  const checks = engine.runtime.calls.filter((call) => call.verb === 'check').length;
  engine.runtime.faults = { failAt: { check: checks + 1 } };
  await looking.look();
  engine.runtime.faults = {};
  const silent = await reached();
  await looking.look();
  expect([silent, await reached()]).toEqual([null, expect.any(Date)]);
});

test('what a restore holds back is left alone while it is gone, and looked after again once it was seen running', async () => {
  const admin = await app.organization();
  const { application } = await makeExample(admin);
  const url = `/application/${application.id}`;
  ok(await admin.post(`${url}/deploy?wait=40`), 200);
  const hold = () => app.db.updateTable('service').set({ restored_at: new Date() }).execute();
  const held = async () =>
    (
      await app.db
        .selectFrom('service')
        .select('restored_at')
        .where('id', '=', application.id)
        .executeTakeFirstOrThrow()
    ).restored_at !== null;
  const number = async () => ok(await admin.get(`${url}/deploymentHistoryV2`), 200).results.length as number;
  const looking = await watcher();
  await hold();
  await looking.look();
  expect(await held()).toBe(false);

  await hold();
  const { identity } = engine.runtime.specOf(application.id)!;
  await engine.runtime.remove(identity, null, { signal: new AbortController().signal, log: () => undefined });
  await looking.look();
  expect([await held(), await number()]).toEqual([true, 1]);

  // Deployed again it is looked after again, whether it was seen or not.
  ok(await admin.post(`${url}/deploy?wait=40`), 200);
  await engine.runtime.remove(engine.runtime.specOf(application.id)!.identity, null, {
    signal: new AbortController().signal,
    log: () => undefined,
  });
  await looking.look();
  await expect.poll(number).toBe(3);
});

const CONTEXT = { signal: new AbortController().signal, log: () => undefined };

/** Two applications of an environment, deployed; the second one in the last stage. */
async function twoStages(admin: Actor) {
  const { application: first, environment } = await makeExample(admin);
  const second = ok(
    await admin.post(`/environment/${environment.id}/application`, exampleBody({ name: 'second' })),
    201,
  );
  const last = await app.db
    .selectFrom('deployment_stage')
    .select('id')
    .where('environment_id', '=', environment.id)
    .orderBy('position', 'desc')
    .limit(1)
    .executeTakeFirstOrThrow();
  const [moved, kept] = [second.id, first.id];
  const earlier = await app.db
    .selectFrom('deployment_stage')
    .select('id')
    .where('environment_id', '=', environment.id)
    .orderBy('position')
    .limit(1)
    .executeTakeFirstOrThrow();
  await app.db.updateTable('service').set({ stage_id: last.id }).where('id', '=', moved).execute();
  await app.db.updateTable('service').set({ stage_id: earlier.id }).where('id', '=', kept).execute();
  ok(await admin.post(`/environment/${environment.id}/deploy?wait=30`), 200);
  return { environment, first: kept as string, second: moved as string };
}

/** Ends what runs of services without a request, as a reboot does. */
async function reboot(...services: string[]): Promise<void> {
  const rows = await app.db.selectFrom('service').select('handle').where('id', 'in', services).execute();
  for (const handle of rows.map((row) => row.handle as Handle))
    await engine.runtime.stop(handle.identity, handle, CONTEXT);
}

/** Services of the automatic requests of an environment, by request. */
async function automatic(environmentId: string) {
  const rows = await app.db
    .selectFrom('deployment as d')
    .innerJoin('deployment_service as ds', 'ds.deployment_id', 'd.id')
    .select(['d.number', 'd.status', 'ds.service_id', 'ds.state'])
    .where('d.environment_id', '=', environmentId)
    .where('d.automatic', '=', true)
    .orderBy('d.number')
    .execute();
  return {
    requests: [...Map.groupBy(rows, ({ number }) => number).values()],
    open: rows.some((r) => r.status !== 'ENDED'),
  };
}

test('after a reboot the services of an environment are asked for together, so that its stages hold', async () => {
  const admin = await app.organization();
  const { environment, first, second } = await twoStages(admin);
  await reboot(first, second);
  await (await watcher()).look();
  await expect.poll(async () => (await automatic(environment.id)).open).toBe(false);
  const { requests } = await automatic(environment.id);
  expect(requests).toHaveLength(1);
  expect(requests[0]!.map(({ state }) => state)).toEqual(['RESTARTED', 'RESTARTED']);
  const restarts = engine.runtime.calls.filter(({ verb }) => verb === 'restart').slice(-2);
  expect(restarts.map(({ serviceId }) => serviceId)).toEqual([first, second]);
});

test('what follows a service that did not come back waits, until both are asked for together', async () => {
  const admin = await app.organization();
  const { environment, first, second } = await twoStages(admin);
  await reboot(first, second);
  const count = engine.runtime.calls.filter(({ verb }) => verb === 'restart').length;
  engine.runtime.faults = { failAt: { restart: count + 1 } };
  const looking = await watcher();
  await looking.look();
  await expect.poll(async () => (await automatic(environment.id)).open).toBe(false);
  engine.runtime.faults = {};
  await looking.look();
  const { requests } = await automatic(environment.id);
  expect(requests.map((request) => request.map(({ state }) => state).toSorted())).toEqual([
    ['CANCELED', 'RESTART_ERROR'],
  ]);
  await app.db
    .updateTable('deployment')
    .set({ ended_at: sql`now() - interval '11 minutes'` })
    .where('environment_id', '=', environment.id)
    .where('automatic', '=', true)
    .execute();
  await looking.look();
  await expect.poll(async () => (await automatic(environment.id)).open).toBe(false);
  expect((await automatic(environment.id)).requests[1]!.map(({ state }) => state)).toEqual(['RESTARTED', 'RESTARTED']);
});

test('a service whose stop is asked for while it is observed is not started again', async () => {
  const admin = await app.organization();
  const { application, environment } = await makeExample(admin);
  const url = `/application/${application.id}`;
  ok(await admin.post(`${url}/deploy?wait=40`), 200);
  await reboot(application.id);
  engine.runtime.faults = { deaf: ['observe'] };
  const looking = (await watcher()).look();
  await expect.poll(() => engine.runtime.calls.at(-1)?.verb).toBe('observe');
  ok(await admin.post(`${url}/stop?wait=40`), 200);
  engine.runtime.faults = {};
  await looking;
  expect(await automatic(environment.id)).toEqual({ requests: [], open: false });
});

test('a runtime that does not answer for one service keeps nobody from looking after the others', async () => {
  const admin = await app.organization();
  const examples = [await makeExample(admin), await makeExample(admin)];
  for (const { application } of examples) ok(await admin.post(`/application/${application.id}/deploy?wait=40`), 200);
  await reboot(...examples.map(({ application }) => application.id as string));
  const count = engine.runtime.calls.filter(({ verb }) => verb === 'observe').length;
  engine.runtime.faults = { hangAt: { observe: count + 1 } };
  await (await watcher(500)).look();
  engine.runtime.faults = {};
  const asked = await Promise.all(examples.map(({ environment }) => automatic(environment.id)));
  expect(asked.map(({ requests }) => requests.length).toSorted()).toEqual([0, 1]);
});

test('a runtime that does not answer is asked once for a service, however often is looked, and again once it has answered', async () => {
  const admin = await app.organization();
  const { application } = await makeExample(admin);
  ok(await admin.post(`/application/${application.id}/deploy?wait=40`), 200);
  const asked = () =>
    engine.runtime.calls.filter(({ verb, serviceId }) => verb === 'observe' && serviceId === application.id).length;
  const looking = await watcher(100);
  engine.runtime.faults = { deaf: ['observe'] };
  for (let look = 0; look < 3; look++) await looking.look();
  expect(asked()).toBe(1);
  engine.runtime.faults = {};
  await expect.poll(async () => (await looking.look(), asked())).toBeGreaterThan(1);
});
