import { expect, test } from 'vitest';
import { MACHINE_RECORDS } from '#clusters/machine-records.ts';
import { forgetReached } from '#resources/cluster/index.ts';
import { RunningWatcher } from '#deployments/watchers/running-watcher.ts';
import { START_AGAIN } from '#services/capabilities/service/rollback/index.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { useEngine } from '#test/harness/engine.ts';

const app = useApp();
const missing: { tasks?: string } = {};
const engine = useEngine(app, { missing }, undefined, { pretendsSources: true });

async function look(): Promise<void> {
  const { id } = await app.db.selectFrom('node').select('id').executeTakeFirstOrThrow();
  await app.db.updateTable('cluster').set({ node_id: id }).execute();
  const runtimes = { runtimeOf: async () => engine.runtime };
  const parts = { platform: app.platform, runtimes, nodeId: id, machine: MACHINE_RECORDS, again: START_AGAIN };
  await new RunningWatcher(parts).look();
}

/** Creates a job, which needs the feature `tasks`. */
async function makeJob() {
  const admin = await app.organization();
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: 'p' }), 201);
  const environment = ok(
    await admin.post(`/project/${project.id}/environment`, { name: 'e', mode: 'PRODUCTION' }),
    201,
  );
  const body = {
    name: 'job',
    cpu: 100,
    memory: 128,
    healthchecks: {},
    schedule: { on_start: { arguments: [] } },
    source: {
      docker: { git_repository: { url: 'https://git.example/job.git', branch: 'HEAD' }, dockerfile_path: 'Dockerfile' },
    },
  };
  const job = ok(await admin.post(`/environment/${environment.id}/job`, body), 201);
  return { admin, job };
}

test('what a cluster lacked when a backup was made refuses nothing after the restore', async () => {
  const { admin, job } = await makeJob();
  missing.tasks = 'Commands cannot run here: mend the engine.';
  await look();
  delete missing.tasks;
  ok(await admin.post(`/job/${job.id}/deploy`), 400);
  await forgetReached(app.db);
  ok(await admin.post(`/job/${job.id}/deploy?wait=40`), 200);
});

test('a request that needs what the check of the cluster found missing is refused with the remedy, until a check finds it', async () => {
  const { admin, job } = await makeJob();
  missing.tasks = 'Commands cannot run here: mend the engine.';
  await look();
  const refused = ok(await admin.post(`/job/${job.id}/deploy`), 400);
  expect(refused.detail).toContain(
    "can't run this: job runs commands to their end. Commands cannot run here: mend the engine. Move it to",
  );
  delete missing.tasks;
  await look();
  ok(await admin.post(`/job/${job.id}/deploy?wait=40`), 200);
});
