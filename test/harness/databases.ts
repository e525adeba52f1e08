import { afterAll, beforeAll, expect } from 'vitest';
import { createWorker } from '#app/engine.ts';
import { createSources } from '#app/git.ts';
import { newId } from '#kernel/ids.ts';
import { BackupWorker } from '#services/kinds/database/backups/worker.ts';
import type { Runtime } from '#runtimes/runtime.ts';
import { ok, type Actor, type TestApp } from '#test/harness/app.ts';
import { removeInstallation } from '#test/harness/remove-everything.ts';

/** Runs a worker of deployments and one of backups on a real runtime, beside the application of the test file. */
export function useDatabases(app: TestApp, runtimeOf: () => Promise<Runtime>): { nodeId: string } {
  const nodeId = newId();
  const stops: (() => Promise<void>)[] = [];
  beforeAll(async () => {
    await app.db.insertInto('node').values({ id: nodeId, name: 'test' }).execute();
    const worker = createWorker(
      {
        settings: app.platform.settings,
        platform: app.platform,
        engineDatabase: app.database,
        directConfig: app.databaseConfig,
        nodeId,
        installation: { id: app.installationId, epoch: 1 },
      },
      { runtimeOf },
      createSources(app.platform),
    );
    const backups = new BackupWorker({ platform: app.platform, nodeId, runtimes: { runtimeOf }, pollMs: 200 });
    await worker.start();
    backups.start();
    stops.push(
      () => worker.stop(),
      () => backups.stop(),
    );
  }, 60_000);
  afterAll(async () => {
    for (const stop of stops) await stop();
    const runtime = await runtimeOf();
    await removeInstallation(runtime, app.db, app.installationId);
    await runtime.close();
  });
  return { nodeId };
}

/** Creates an environment of a new organization on a cluster of that runtime. */
export async function placeOn(app: TestApp, runtime: string): Promise<{ admin: Actor; environment: string }> {
  const admin = await app.organization();
  await app.db.updateTable('cluster').set({ runtime }).where('organization_id', '=', admin.organizationId).execute();
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201).id;
  return { admin, environment: ok(await admin.post(`/project/${project}/environment`, { name: 'e' }), 201).id };
}

/** Creates and deploys a database. */
export async function deployedDatabase(admin: Actor, environment: string, body: object): Promise<string> {
  const given = { name: newId(), mode: 'MANAGED', accessibility: 'PUBLIC', memory: 512, storage: 1, ...body };
  const { id } = ok(await admin.post(`/environment/${environment}/database`, given), 201);
  await act(admin, id, 'deploy', 'DEPLOYED');
  return id;
}

/** Requests an action and waits for its end; the error of a failure shows the deployment's log. */
export async function act(admin: Actor, id: string, action: string, wanted: string): Promise<void> {
  const status = ok(await admin.post(`/database/${id}/${action}?wait=300`), 200);
  if (status.state === wanted) return;
  const { environment } = ok(await admin.get(`/database/${id}`), 200);
  const logs = ok(await admin.get(`/environment/${environment.id}/logs`), 200);
  expect.fail(`${status.state}: ${logs.map((line: any) => line.message.safe_message).join('\n')}`);
}

/** Makes a backup and waits for it. */
export async function backUp(admin: Actor, id: string): Promise<any> {
  const made = ok(await admin.post(`/database/${id}/backup`, { name: 'by hand', message: 'kept' }), 201);
  return backupEnd(admin, made.id);
}

/** Returns the backup, once it is finished or has failed. */
async function backupEnd(admin: Actor, backupId: string): Promise<any> {
  const url = `/databaseBackup/${backupId}`;
  await expect
    .poll(async () => ok(await admin.get(url), 200).status.state, { timeout: 60_000, interval: 100 })
    .toSatisfy((state: string) => state === 'READY' || state === 'DEPLOYMENT_ERROR');
  return ok(await admin.get(url), 200);
}

/** Plans and runs a restore; returns the plan and the result. */
export async function restore(admin: Actor, id: string, backupId: string): Promise<{ plan: any; end: any }> {
  const plan = ok(await admin.post(`/database/${id}/restore`, { backup_id: backupId }), 201);
  const url = `/database/${id}/restore/${plan.id}`;
  ok(await admin.post(`${url}/run`), 200);
  await expect
    .poll(async () => ok(await admin.get(url), 200).state, { timeout: 120_000, interval: 200 })
    .toSatisfy((state: string) => state === 'READY' || state === 'FAILED');
  return { plan, end: ok(await admin.get(url), 200) };
}
