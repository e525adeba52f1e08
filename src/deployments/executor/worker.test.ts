import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createWorker } from '#app/engine.ts';
import { createSources } from '#app/git.ts';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import { createFakeRuntime } from '#runtimes/fake/index.ts';
import { startRelay } from '#test/crash/harness/postgres.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { makeExample } from '#test/harness/engine.ts';

const warnings: string[] = [];
const app = useApp({ QUARTERDECK_LOG_LEVEL: 'warn' }, {}, undefined, (line) => warnings.push(line));

/** A worker whose own connection to the database goes over a relay. */
async function relayedWorker() {
  const relay = await startRelay(path.join(app.databaseConfig.host!, '.s.PGSQL.5432'));
  const nodeId = newId();
  await app.db.insertInto('node').values({ id: nodeId, name: nodeId }).execute();
  const runtime = createFakeRuntime();
  const base = {
    settings: app.platform.settings,
    platform: app.platform,
    engineDatabase: app.database,
    directConfig: { ...app.databaseConfig, host: '127.0.0.1', port: relay.port },
    nodeId,
    installation: { id: app.installationId, epoch: 1 },
  };
  const worker = createWorker(base, { runtimeOf: async () => runtime }, createSources(app.platform));
  onTestFinished(async () => {
    await worker.stop();
    await relay.close();
    await runtime.close();
  });
  return { worker, relay };
}

test('a worker whose connection falls silent while it has nothing to do joins the workers again', async () => {
  const { worker, relay } = await relayedWorker();
  await worker.start();
  await relay.set('silent');
  await expect.poll(() => warnings.join('\n')).toContain('its deployments are left to others');
  await relay.set('open');
  const admin = await app.organization();
  const { application } = await makeExample(admin);
  expect(ok(await admin.post(`/application/${application.id}/deploy?wait=40`), 200).state).toBe('DEPLOYED');
}, 60_000);

test('a worker that begins on a database that takes the connection and says nothing does not wait for ever', async () => {
  const { worker, relay } = await relayedWorker();
  await relay.set('silent');
  await expect(worker.start()).rejects.toThrow(/timeout/);
});

test('a worker that fails to join leaves no connection open', async () => {
  const { worker } = await relayedWorker();
  const connections = async () => {
    const { rows } = await sql<{ n: number }>`select count(*)::int as n from pg_stat_activity
      where datname = current_database() and application_name like 'quarterdeck worker %'`.execute(app.db);
    return rows[0]!.n;
  };
  await expect.poll(connections).toBe(0);
  await sql`alter sequence worker_number rename to worker_number_away`.execute(app.db);
  try {
    for (let time = 0; time < 3; time++) await expect(worker.start()).rejects.toThrow(/worker_number/);
    await expect.poll(connections).toBe(0);
  } finally {
    await sql`alter sequence worker_number_away rename to worker_number`.execute(app.db);
  }
});
