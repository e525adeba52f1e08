import { expect, onTestFinished, test } from 'vitest';
import { ruleBody, useAlerts } from '#delivery/alerts/alerts.fixture.ts';
import { newId } from '#kernel/ids.ts';
import { RuntimeError, type Runtime } from '#runtimes/runtime.ts';
import { BackupWorker } from '#services/kinds/database/backups/worker.ts';
import { deploy, executionsOf, makeJob, order } from '#services/kinds/job/job.fixture.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { useEngine } from '#test/harness/engine.ts';

const app = useApp({ QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: '127.0.0.0/8' });
const engine = useEngine(app);
const { receiver, evaluate, worker } = useAlerts(app);

/** Creates a rule on an environment, and returns what its receiver is sent. */
async function watch(admin: Actor, environmentId: string, promql: string): Promise<string[]> {
  const { texts, id } = await receiver(admin);
  const { cluster_id } = ok(await admin.get(`/environment/${environmentId}`), 200);
  const target = { target_type: 'ENVIRONMENT', target_id: environmentId };
  const condition = { kind: 'BUILT', promql };
  ok(await admin.post('/alert-rules', ruleBody(admin, cluster_id, target, [id], { condition })), 201);
  worker();
  return texts;
}

test('a job that fails is told with its exit code, and its end once it succeeds', { timeout: 60_000 }, async () => {
  const job = await makeJob(await app.organization());
  const texts = await watch(job.admin, job.environmentId, 'job_failed');
  order(engine, job, { exitCode: 7 });
  await deploy(job);
  expect(await executionsOf(job)).toMatchObject([{ state: 'FAILED', exit_code: 7 }]);
  await evaluate();
  await expect.poll(() => texts).toEqual([expect.stringContaining('its run ended with exit code 7')]);
  order(engine, job, { exitCode: 0 });
  await deploy(job);
  await evaluate();
  await expect.poll(() => texts.slice(1)).toEqual([expect.stringMatching(/^Resolved: /)]);
});

test('a backup that fails is told with its name, and its end once one succeeds', { timeout: 60_000 }, async () => {
  const admin = await app.organization();
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201);
  const environment = ok(await admin.post(`/project/${project.id}/environment`, { name: 'e' }), 201);
  const given = { name: 'store', type: 'POSTGRESQL', version: '16', mode: 'MANAGED' };
  const { id } = ok(await admin.post(`/environment/${environment.id}/database`, given), 201);
  const handle = JSON.stringify({ runtime: 'fake', identity: {} });
  await app.db.updateTable('service').set({ wanted: 'running', handle }).where('id', '=', id).execute();
  const node = newId();
  await app.db.insertInto('node').values({ id: node, name: newId() }).execute();
  let fails = true;
  const runtime = {
    name: 'fake',
    exec: async (_handle, request) => {
      if (fails) throw new RuntimeError('failed', 'The tool of the database has failed.');
      request.stdout.write('a dump');
      return { exitCode: 0, stderr: '' };
    },
  } as Pick<Runtime, 'name' | 'exec'> as Runtime;
  const backups = new BackupWorker({
    platform: app.platform,
    nodeId: node,
    runtimes: { runtimeOf: async () => runtime },
    pollMs: 20,
  });
  backups.start();
  onTestFinished(() => backups.stop());
  const backUp = async (name: string, state: string) => {
    const made = ok(await admin.post(`/database/${id}/backup`, { name, message: '' }), 201);
    const stateOf = async () => ok(await admin.get(`/databaseBackup/${made.id}`), 200).status.state;
    await expect.poll(stateOf).toBe(state);
  };
  const texts = await watch(admin, environment.id, 'backup_failed');
  await backUp('nightly', 'DEPLOYMENT_ERROR');
  await evaluate();
  await expect.poll(() => texts).toEqual([expect.stringContaining('the backup nightly failed')]);
  fails = false;
  await backUp('second', 'READY');
  await evaluate();
  await expect.poll(() => texts.slice(1)).toEqual([expect.stringMatching(/^Resolved: /)]);
});
