import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Registry } from 'prom-client';
import { afterAll, afterEach, expect, onTestFinished, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import { registerStoreGauges } from '#services/kinds/database/backups/elsewhere.ts';
import { BackupWorker } from '#services/kinds/database/backups/worker.ts';
import type { Runtime } from '#runtimes/runtime.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { S3_KEYS, startStore } from '#test/harness/s3.ts';

const loaded: string[] = [];
const runtime = {
  name: 'fake',
  restart: async (handle) => handle,
  exec: async (_handle, request) => {
    if (request.stdin) for await (const part of request.stdin) loaded.push(String(part));
    request.stdout.write('what the tool wrote');
    return { exitCode: 0, stderr: '' };
  },
} as Pick<Runtime, 'name' | 'exec' | 'restart'> as Runtime;

const store = await startStore();
afterAll(() => store.stop());
afterEach(async () => void (await app.db.deleteFrom('database_backup').execute()));
const sending = {
  QUARTERDECK_COPIES_URL: store.url,
  QUARTERDECK_COPIES_ACCESS_KEY_ID: S3_KEYS.accessKeyId,
  QUARTERDECK_COPIES_SECRET_ACCESS_KEY: S3_KEYS.secretAccessKey,
};
const machineId = newId();
const app = useApp(sending, { runtimeOf: async () => runtime, machineId });

/** Adds a machine and starts its worker, whose files lie in the data directory that all share here. */
async function startWorker(nodeId: string): Promise<BackupWorker> {
  await app.db
    .insertInto('node')
    .values({ id: nodeId, name: nodeId })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  const runtimes = { runtimeOf: async () => runtime };
  const worker = new BackupWorker({ platform: app.platform, nodeId, runtimes, pollMs: 20 });
  worker.start();
  onTestFinished(() => worker.stop());
  return worker;
}

async function runningDatabase(): Promise<{ admin: Actor; id: string }> {
  const admin = await app.organization();
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201).id;
  const environment = ok(await admin.post(`/project/${project}/environment`, { name: 'e' }), 201).id;
  const body = { name: 'store', type: 'POSTGRESQL', version: '16', mode: 'MANAGED' };
  const { id } = ok(await admin.post(`/environment/${environment}/database`, body), 201);
  const handle = JSON.stringify({ runtime: 'fake', identity: { generation: 7 } });
  await app.db.updateTable('service').set({ wanted: 'running', handle }).where('id', '=', id).execute();
  return { admin, id };
}

/** Makes a backup and returns its id once it is made. */
async function backUp({ admin, id }: { admin: Actor; id: string }): Promise<string> {
  const backup = ok(await admin.post(`/database/${id}/backup`, { name: 'b', message: '' }), 201).id as string;
  await expect.poll(async () => ok(await admin.get(`/databaseBackup/${backup}`), 200).status.state).toBe('READY');
  return backup;
}

/** Restores a backup and returns the outcome. */
async function restore({ admin, id }: { admin: Actor; id: string }, backup_id: string) {
  const plan = ok(await admin.post(`/database/${id}/restore`, { backup_id }), 201);
  const url = `/database/${id}/restore/${plan.id}`;
  ok(await admin.post(`${url}/run`), 200);
  await expect.poll(async () => ok(await admin.get(url), 200).state).toMatch(/READY|FAILED/);
  return ok(await admin.get(url), 200);
}

const objects = () =>
  readdirSync(store.folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name));
const objectOf = (backup: string) => objects().find((file) => file.endsWith(`${backup}.qdb`));
const fileOf = (admin: Actor, backup: string) =>
  path.join(app.platform.settings.dataDir, 'backups', admin.organizationId, `${backup}.qdb`);
const rowOf = (backup: string) =>
  app.db.selectFrom('database_backup').selectAll().where('id', '=', backup).executeTakeFirstOrThrow();
const isStored = async (backup: string) => (await rowOf(backup)).stored_at !== null;

test('the file of a backup is sent as it lies on its machine, and gone from both once the backup is deleted', async () => {
  await startWorker(machineId);
  const database = await runningDatabase();
  const backup = await backUp(database);
  await expect.poll(() => isStored(backup)).toBe(true);
  const object = objectOf(backup)!;
  expect(path.relative(store.folder, object)).toBe(
    path.join('quarterdeck', app.installationId, 'databases', database.admin.organizationId, `${backup}.qdb`),
  );
  const content = readFileSync(object);
  expect(content.equals(readFileSync(fileOf(database.admin, backup)))).toBe(true);
  expect(content.includes('what the tool wrote')).toBe(false);
  ok(await database.admin.delete(`/databaseBackup/${backup}`), 204);
  (await startWorker(machineId)).nudge();
  await expect.poll(() => [existsSync(object), existsSync(fileOf(database.admin, backup))]).toEqual([false, false]);
  await expect.poll(() => app.db.selectFrom('database_backup_file').selectAll().execute()).toEqual([]);
});

test('a file that cannot be removed holds up no other one', async () => {
  await startWorker(machineId);
  const database = await runningDatabase();
  const [stuck, free] = [await backUp(database), await backUp(database)];
  for (const backup of [stuck, free]) await expect.poll(() => isStored(backup)).toBe(true);
  const file = fileOf(database.admin, stuck);
  rmSync(file);
  mkdirSync(file);
  for (const backup of [stuck, free]) ok(await database.admin.delete(`/databaseBackup/${backup}`), 204);
  await startWorker(machineId);
  const left = () => app.db.selectFrom('database_backup_file').select('backup_id').execute();
  await expect.poll(left).toEqual([{ backup_id: stuck }]);
  rmSync(file, { recursive: true });
  await startWorker(machineId);
  await expect.poll(left).toEqual([]);
});

test('a file that its machine has lost is fetched for a restore and for a download', async () => {
  await startWorker(machineId);
  const database = await runningDatabase();
  const backup = await backUp(database);
  await expect.poll(() => isStored(backup)).toBe(true);
  rmSync(fileOf(database.admin, backup));
  loaded.length = 0;
  expect(await restore(database, backup)).toMatchObject({ state: 'READY', error: null });
  expect(loaded.join('')).toBe('what the tool wrote');
  rmSync(fileOf(database.admin, backup));
  expect(ok(await database.admin.get(`/databaseBackup/${backup}/download`), 200)).toBe('what the tool wrote');
  expect(existsSync(fileOf(database.admin, backup))).toBe(true);
});

test('another machine restores it and keeps no file', async () => {
  const first = await startWorker(machineId);
  const database = await runningDatabase();
  const backup = await backUp(database);
  await expect.poll(() => isStored(backup)).toBe(true);
  await first.stop();
  rmSync(fileOf(database.admin, backup));
  await startWorker(newId());
  expect(await restore(database, backup)).toMatchObject({ state: 'READY' });
  expect(existsSync(fileOf(database.admin, backup))).toBe(false);
});

test('while the store is away backups are made, and sent when it is back', async () => {
  const away = `${store.folder}-away`;
  renameSync(store.folder, away);
  const worker = await startWorker(machineId);
  const database = await runningDatabase();
  const backup = await backUp(database);
  await expect.poll(async () => (await rowOf(backup)).sending_at).not.toBeNull();
  const registry = new Registry();
  registerStoreGauges(registry, app.db, app.platform.settings);
  expect(await registry.metrics()).toContain('\nquarterdeck_database_backups_unsent 1\n');
  await worker.stop();
  renameSync(away, store.folder);
  await startWorker(machineId);
  await expect.poll(() => isStored(backup)).toBe(true);
  expect(await registry.metrics()).toContain('\nquarterdeck_database_backups_unsent 0\n');
});

test('more backups without a file than are looked at together keep no later one from being sent', async () => {
  const database = await runningDatabase();
  const first = await startWorker(machineId);
  const backup = await backUp(database);
  await expect.poll(() => isStored(backup)).toBe(true);
  await first.stop();
  // As an installation has them that was restored without the files of its machine.
  const { id: _, ...row } = await rowOf(backup);
  const lost = Array.from({ length: 100 }, () => ({ ...row, id: newId(), stored_at: null, created_at: new Date(0) }));
  await app.db.insertInto('database_backup').values(lost).execute();
  await startWorker(machineId);
  const next = await backUp(database);
  await expect.poll(() => isStored(next)).toBe(true);
});

test('a backup that is deleted while it is sent leaves no object', async () => {
  await startWorker(machineId);
  const database = await runningDatabase();
  const backup = await backUp(database);
  await expect.poll(() => isStored(backup)).toBe(true);
  // As a process leaves it that is killed between the two.
  await sql`update database_backup set stored_at = null where id = ${backup}`.execute(app.db);
  await app.db.deleteFrom('database_backup').where('id', '=', backup).execute();
  await startWorker(machineId);
  await expect.poll(() => objectOf(backup)).toBeUndefined();
});

test('a file that was changed in the store is refused by a restore', async () => {
  await startWorker(machineId);
  const database = await runningDatabase();
  const backup = await backUp(database);
  await expect.poll(() => isStored(backup)).toBe(true);
  const content = readFileSync(objectOf(backup)!);
  content[content.length - 1]! ^= 1;
  writeFileSync(objectOf(backup)!, content);
  rmSync(fileOf(database.admin, backup));
  expect(await restore(database, backup)).toMatchObject({
    state: 'FAILED',
    error: expect.stringContaining('The file of the backup was changed'),
  });
});
