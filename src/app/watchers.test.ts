import { expect, test } from 'vitest';
import { RunningWatcher } from '#app/watchers.ts';
import { sql } from '#platform/database/index.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { exampleBody, makeExample, useEngine } from '#test/harness/engine.ts';

const app = useApp();
const engine = useEngine(app);

/** A watcher of the machine that all clusters are now said to live on. */
async function watcher(): Promise<RunningWatcher> {
  const { id } = await app.db.selectFrom('node').select('id').executeTakeFirstOrThrow();
  await app.db.updateTable('cluster').set({ node_id: id }).execute();
  return new RunningWatcher(app.platform, { get: async () => engine.runtime }, id);
}

test('what is gone from its place is brought back as it was released, and not as it was configured since', async () => {
  const admin = await app.organization();
  const { application } = await makeExample(admin);
  const url = `/application/${application.id}`;
  ok(await admin.post(`${url}/deploy?wait=20`), 200);
  ok(await admin.put(url, exampleBody({ cpu: 900 })), 200);
  const before = engine.runtime.specOf(application.id)!;
  const context = { signal: new AbortController().signal, log: () => undefined };
  await engine.runtime.remove({ ...before.identity, generation: before.identity.generation + 1 }, null, context);
  const looking = await watcher();
  await looking.look();
  await expect.poll(() => engine.runtime.specOf(application.id)?.resources.cpuMilli, { timeout: 15_000 }).toBe(500);
  await expect
    .poll(async () => ok(await admin.get(`${url}/status`), 200), { timeout: 15_000 })
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
  ok(await admin.post(`${url}/deploy?wait=20`), 200);
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
  ok(await admin.post(`${url}/deploy?wait=20`), 200);
  await engine.runtime.remove(engine.runtime.specOf(application.id)!.identity, null, {
    signal: new AbortController().signal,
    log: () => undefined,
  });
  await looking.look();
  await expect.poll(number, { timeout: 15_000 }).toBe(3);
});
