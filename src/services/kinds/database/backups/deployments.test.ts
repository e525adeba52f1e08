import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { BackupWorker } from '#services/kinds/database/backups/worker.ts';
import type { ExecRequest, Runtime } from '#runtimes/runtime.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { useEngine } from '#test/harness/engine.ts';
import { ASKS_LOOPBACK, useImages } from '#test/harness/images.ts';

/** Delay of the programs beside a server; by default each ends at once. */
let waits: (request: ExecRequest) => Promise<void> = async () => undefined;
const runtime = {
  name: 'fake',
  exec: async (_handle, request) => {
    if (request.stdin) for await (const _ of request.stdin);
    await waits(request);
    request.stdout.write('x');
    return { exitCode: 0, stderr: '' };
  },
} as Pick<Runtime, 'name' | 'exec'> as Runtime;

const images = await useImages();
const app = useApp(
  { ...ASKS_LOOPBACK, QUARTERDECK_DATABASE_IMAGE_PREFIX: `${images.host}/` },
  { runtimeOf: async () => runtime },
);
useEngine(app);
let backups: BackupWorker;
beforeAll(async () => {
  const nodeId = newId();
  await app.db.insertInto('node').values({ id: nodeId, name: 'beside' }).execute();
  backups = new BackupWorker({
    platform: app.platform,
    nodeId,
    runtimes: { runtimeOf: async () => runtime },
    pollMs: 20,
  });
  backups.start();
});
afterAll(() => backups.stop());

/** Deploys a database in an environment of its own, with a backup. */
async function deployed(admin: Actor) {
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201).id;
  const environment = ok(await admin.post(`/project/${project}/environment`, { name: 'e' }), 201).id as string;
  const body = { name: 'store', type: 'POSTGRESQL', version: '16', mode: 'CONTAINER' };
  const url = `/database/${ok(await admin.post(`/environment/${environment}/database`, body), 201).id}`;
  expect(ok(await admin.post(`${url}/deploy?wait=40`), 200).state).toBe('DEPLOYED');
  const backup = `/databaseBackup/${ok(await admin.post(`${url}/backup`, { name: 'b', message: '' }), 201).id}`;
  const state = async () => ok(await admin.get(backup), 200).status.state;
  await expect.poll(state).toBe('READY');
  return { project, environment, url, backup };
}

test('a deployment waits for a restore in its environment, which keeps its backup; others go on meanwhile', async () => {
  const admin = await app.organization();
  const { url, backup } = await deployed(admin);
  const other = await deployed(admin);
  const [begun, letGo] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  waits = async ({ command }) => {
    if (command[0] !== 'pg_restore') return;
    begun.resolve();
    await letGo.promise;
  };
  const plan = ok(await admin.post(`${url}/restore`, { backup_id: backup.split('/')[2] }), 201);
  const restore = `${url}/restore/${plan.id}`;
  ok(await admin.post(`${restore}/run`), 200);
  await begun.promise;
  ok(await admin.post(`${url}/redeploy`), 200);
  expect(ok(await admin.post(`${other.url}/redeploy?wait=40`), 200).state).toBe('DEPLOYED');
  expect(ok(await admin.get(`${url}/status`), 200).state).toBe('DEPLOYMENT_QUEUED');
  expect(ok(await admin.get(restore), 200).state).toBe('RUNNING');
  expect(ok(await admin.delete(backup), 409).message).toContain('being restored');
  letGo.resolve();
  await expect.poll(async () => ok(await admin.get(restore), 200).state).toBe('READY');
  await expect.poll(async () => ok(await admin.get(`${url}/status`), 200).state).toBe('DEPLOYED');
  ok(await admin.delete(backup), 204);
});

test("with an organization the files of its backups go, and nobody else's", async () => {
  const [admin, stranger] = [await app.organization(), await app.organization()];
  const { project } = await deployed(admin);
  await deployed(stranger);
  const folder = (actor: Actor) => path.join(app.platform.settings.dataDir, 'backups', actor.organizationId);
  ok(await admin.delete(`/project/${project}`), 204);
  const gone = async () => (await admin.get(`/project/${project}`)).status;
  await expect.poll(gone).toBe(404);
  expect(readdirSync(folder(admin))).toHaveLength(1);
  await app.db.deleteFrom('cluster').where('organization_id', '=', admin.organizationId).execute();
  ok(await admin.delete(`/organization/${admin.organizationId}`), 204);
  await expect.poll(() => existsSync(folder(admin))).toBe(false);
  expect(readdirSync(folder(stranger))).toHaveLength(1);
});
