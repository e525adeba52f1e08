import { expect, onTestFinished, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import { BackupWorker } from '#services/kinds/database/backups/worker.ts';
import type { Runtime } from '#runtimes/runtime.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { markAsFork } from '#test/harness/fork.ts';

const loaded: string[] = [];
const runtime = {
  name: 'fake',
  restart: async (handle) => handle,
  exec: async (_handle, request) => {
    if (request.stdin) for await (const part of request.stdin) loaded.push(String(part));
    request.stdout.write('x');
    return { exitCode: 0, stderr: '' };
  },
} as Pick<Runtime, 'name' | 'exec' | 'restart'> as Runtime;

const app = useApp({}, { runtimeOf: async () => runtime });

async function startWorker() {
  const nodeId = newId();
  await app.db.insertInto('node').values({ id: nodeId, name: nodeId }).execute();
  const worker = new BackupWorker({
    platform: app.platform,
    nodeId,
    runtimes: { runtimeOf: async () => runtime },
    pollMs: 20,
  });
  worker.start();
  onTestFinished(() => worker.stop());
}

/** Creates a running database in an environment of its own. */
async function databaseOf(admin: Actor, isFork: boolean) {
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201).id;
  const environment = ok(await admin.post(`/project/${project}/environment`, { name: 'e' }), 201).id as string;
  if (isFork) await markAsFork(app.db, environment);
  const body = { name: 'store', type: 'POSTGRESQL', version: '16', mode: 'MANAGED' };
  const { id } = ok(await admin.post(`/environment/${environment}/database`, body), 201);
  const handle = JSON.stringify({ runtime: 'fake', identity: { generation: 7 } });
  await app.db.updateTable('service').set({ wanted: 'running', handle }).where('id', '=', id).execute();
  return { environment, id: id as string };
}

/** Makes a backup of a database. */
async function backUp(admin: Actor, database: string): Promise<string> {
  const { id } = ok(await admin.post(`/database/${database}/backup`, { name: 'b', message: '' }), 201);
  await expect.poll(async () => ok(await admin.get(`/databaseBackup/${id}`), 200).status.state).toBe('READY');
  return id;
}

const plan = (admin: Actor, database: string, backup_id: string) =>
  admin.post(`/database/${database}/restore`, { backup_id });

const stateOf = async (admin: Actor, database: string, restore: string) =>
  ok(await admin.get(`/database/${database}/restore/${restore}`), 200);

test('a backup is restored neither into the preview of a fork from elsewhere nor out of it, also when that is gone', async () => {
  await startWorker();
  const admin = await app.organization();
  const [normal, other] = [await databaseOf(admin, false), await databaseOf(admin, false)];
  const [fork, second] = [await databaseOf(admin, true), await databaseOf(admin, true)];
  const [real, strange] = [await backUp(admin, normal.id), await backUp(admin, fork.id)];
  expect(ok(await plan(admin, fork.id, real), 409).message).toContain('only backups of that preview');
  for (const { id } of [normal, second])
    expect(ok(await plan(admin, id, strange), 409).message).toContain('databases of that preview only');
  ok(await plan(admin, other.id, real), 201);
  ok(await plan(admin, fork.id, strange), 201);

  for (const { id, environment } of [fork, normal]) {
    await app.db.deleteFrom('service').where('id', '=', id).execute();
    await app.db.deleteFrom('environment').where('id', '=', environment).execute();
  }
  expect(ok(await plan(admin, other.id, strange), 409).message).toContain('databases of that preview only');
  const { id } = ok(await plan(admin, other.id, real), 201);
  ok(await admin.post(`/database/${other.id}/restore/${id}/run`), 200);
  await expect.poll(async () => (await stateOf(admin, other.id, id)).state).toBe('READY');
});

/** Plans the restore of a backup of one database into another one, of two environments. */
async function plannedRestore(admin: Actor) {
  const [from, into] = [await databaseOf(admin, false), await databaseOf(admin, false)];
  const { id: backup } = ok(await admin.post(`/database/${from.id}/backup`, { name: 'b', message: '' }), 201);
  await sql`update database_backup set status = 'READY' where id = ${backup}`.execute(app.db);
  return { into, id: ok(await plan(admin, into.id, backup), 201).id as string };
}

test('a restore that was planned or requested before it was forbidden is not carried out', async () => {
  const admin = await app.organization();
  const { into: target, id } = await plannedRestore(admin);
  await markAsFork(app.db, target.environment);
  const run = `/database/${target.id}/restore/${id}/run`;
  expect(ok(await admin.post(run), 409).message).toContain('only backups of that preview');
  expect((await stateOf(admin, target.id, id)).state).toBe('PLANNED');
  await sql`update database_restore set status = 'QUEUED' where id = ${id}`.execute(app.db);
  loaded.length = 0;
  await startWorker();
  await expect.poll(async () => (await stateOf(admin, target.id, id)).state).toBe('FAILED');
  expect((await stateOf(admin, target.id, id)).error).toContain('only backups of that preview');
  expect(loaded).toEqual([]);
});

test('who may not back up where the backup is from does not run a restore that somebody else planned', async () => {
  const admin = await app.organization();
  const { into: own, id } = await plannedRestore(admin);
  const of = `/organization/${admin.organizationId}`;
  const { project } = ok(await admin.get(`/environment/${own.environment}`), 200);
  const project_permissions = [{ project_id: project.id, is_admin: true }];
  const role = ok(await admin.post(`${of}/customRole`, { name: newId(), cluster_permissions: [], project_permissions }), 201); // prettier-ignore
  const { token } = ok(await admin.post(`${of}/apiToken`, { name: newId(), role_id: role.id }), 201);
  const headers = { authorization: `Token ${token}` };
  ok(await app.anonymous('POST', `/database/${own.id}/restore/${id}/run`, {}, headers), 403);
  expect((await stateOf(admin, own.id, id)).state).toBe('PLANNED');
});
