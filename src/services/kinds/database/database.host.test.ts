import { mkdtempSync, readFileSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { afterAll, expect, test } from 'vitest';
import { inTransaction } from '#platform/context.ts';
import { embeddedBinaries } from '#platform/database/embedded.ts';
import { MemoryRouter } from '#runtimes/contract/memory-router.ts';
import { createHostRuntime } from '#runtimes/host/index.ts';
import { removeTree } from '#runtimes/host/remove-tree.ts';
import type { Runtime } from '#runtimes/runtime.ts';
import { environmentTarget } from '#resources/environment/index.ts';
import { cloneEnvironment } from '#services/capabilities/environment/clone/index.ts';
import { KINDS } from '#services/mount.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { act, backUp, deployedDatabase, placeOn, restore, useDatabases } from '#test/harness/databases.ts';

const dataDir = mkdtempSync(path.join(tmpdir(), 'qd-host-'));
// Entered before the workers, so that it is done after they have ended.
afterAll(() => removeTree(dataDir));
let made: Promise<Runtime> | undefined;
const runtimeOf = (): Promise<Runtime> =>
  (made ??= createHostRuntime({
    dataDir,
    installation: app.installationId,
    router: new MemoryRouter(),
    log: () => undefined,
    postgresql: embeddedBinaries(),
  }));
const app = useApp({}, { runtimeOf });
useDatabases(app, runtimeOf);

const POSTGRESQL = { type: 'POSTGRESQL', version: '18' };

/** Asks the database as its users do: with the master credentials. */
async function ask(admin: Actor, id: string, statement: string): Promise<Record<string, unknown>[]> {
  const { port, login: user, password } = ok(await admin.get(`/database/${id}/masterCredentials`), 200);
  const client = new pg.Client({ host: '127.0.0.1', port, user, password, database: 'app' });
  await client.connect();
  try {
    return (await client.query(statement)).rows;
  } finally {
    await client.end();
  }
}

const backupsOf = async (admin: Actor) =>
  ok(await admin.get(`/organization/${admin.organizationId}/databaseBackup`), 200).results;

test('what was written is there after a redeploy, a restart, a stop and an edit, and gone after an uninstall', async () => {
  const { admin, environment } = await placeOn(app, 'host');
  const id = await deployedDatabase(admin, environment, { ...POSTGRESQL, mode: 'CONTAINER' });
  await ask(admin, id, 'create table kept (n integer)');
  await ask(admin, id, 'insert into kept values (7)');
  await act(admin, id, 'redeploy', 'DEPLOYED');
  await act(admin, id, 'restart-service', 'RESTARTED');
  await act(admin, id, 'stop', 'STOPPED');
  await expect(ask(admin, id, 'select 1')).rejects.toThrow();
  ok(await admin.put(`/database/${id}`, { memory: 768 }), 200);
  await act(admin, id, 'deploy', 'DEPLOYED');
  expect(await ask(admin, id, 'select n from kept')).toEqual([{ n: 7 }]);
  await act(admin, id, 'uninstall', 'DELETED');
  await act(admin, id, 'deploy', 'DEPLOYED');
  await expect(ask(admin, id, 'select n from kept')).rejects.toThrow(/does not exist/);
  expect(await backupsOf(admin), 'of one that is just the server').toEqual([]);
}, 180_000);

test('a backup brings back what was dropped, here and in another database, and says before what it replaces', async () => {
  const { admin, environment } = await placeOn(app, 'host');
  const id = await deployedDatabase(admin, environment, POSTGRESQL);
  await ask(admin, id, "create table orders as select n, repeat('x', 100) as t from generate_series(1, 10000) n");
  const backup = await backUp(admin, id);
  expect(backup).toMatchObject({ error: null, status: { state: 'READY' }, format: 'pg_basebackup', origin: 'MANUAL' });
  expect(backup.size_in_bytes).toBeGreaterThan(1e6);
  const { password } = ok(await admin.get(`/database/${id}/masterCredentials`), 200);
  const file = path.join(app.platform.settings.dataDir, 'backups', admin.organizationId, `${backup.id}.qdb`);
  expect(readFileSync(file).includes('orders'), 'encrypted').toBe(false);

  await ask(admin, id, 'drop table orders');
  await ask(admin, id, 'create table later (n integer)');
  const { plan, end } = await restore(admin, id, backup.id);
  expect(plan.replaces.map((one: any) => one.name)).toEqual(['public.later']);
  expect(end).toMatchObject({ state: 'READY', error: null, safety_backup_id: expect.any(String) });
  expect(await ask(admin, id, 'select count(*)::int as n from orders')).toEqual([{ n: 10000 }]);
  await expect(ask(admin, id, 'select * from later')).rejects.toThrow(/does not exist/);

  const second = await deployedDatabase(admin, environment, POSTGRESQL);
  expect((await restore(admin, second, backup.id)).end).toMatchObject({ state: 'READY', error: null });
  expect(await ask(admin, second, 'select count(*)::int as n from orders')).toEqual([{ n: 10000 }]);
  expect(ok(await admin.get(`/database/${second}/masterCredentials`), 200).password).not.toBe(password);
  // What the restore replaced was saved before.
  expect((await restore(admin, id, end.safety_backup_id)).end).toMatchObject({ state: 'READY', error: null });
  expect(await ask(admin, id, 'select count(*)::int as n from later')).toEqual([{ n: 0 }]);

  const tar = ok(await admin.get(`/databaseBackup/${backup.id}/download`), 200) as unknown as string;
  expect(tar.slice(0, 100)).toContain('backup_label');
  truncateSync(file, 500_000);
  const cut = await restore(admin, second, backup.id);
  expect(cut.end).toMatchObject({ state: 'FAILED', error: 'The file of the backup is cut off.' });
  expect(await ask(admin, second, 'select count(*)::int as n from orders')).toEqual([{ n: 10000 }]);
}, 240_000);

test('the database of a preview starts with the content of its source, and the source stays as it is', async () => {
  const { admin, environment } = await placeOn(app, 'host');
  const id = await deployedDatabase(admin, environment, POSTGRESQL);
  await ask(admin, id, 'create table orders as select 7 as n');
  const { id: rule, ...rest } = ok(await admin.get(`/environment/${environment}/deploymentRule`), 200);
  const put = await admin.put(`/environment/${environment}/deploymentRule/${rule}`, {
    ...rest,
    preview_databases: 'COPY',
  });
  expect(ok(put, 200).preview_databases).toBe('COPY');
  const target = (await environmentTarget.find(app.db, environment, [admin.organizationId], { lock: false }))!;
  const clone = await inTransaction(
    app.context,
    (inside) =>
    cloneEnvironment({ ...inside, target, require: () => undefined }, KINDS, { name: 'preview', mode: 'PREVIEW' }, { isPreview: true }), // prettier-ignore
  );
  ok(await admin.post(`/environment/${clone.id}/deploy?wait=120`), 200);
  const [copy] = ok(await admin.get(`/environment/${clone.id}/database`), 200).results;
  expect(await ask(admin, copy.id, 'select n from orders')).toEqual([{ n: 7 }]);
  await ask(admin, copy.id, 'insert into orders values (8)');
  await act(admin, copy.id, 'redeploy', 'DEPLOYED');
  expect(await ask(admin, copy.id, 'select n from orders')).toEqual([{ n: 7 }, { n: 8 }]);
  expect(await ask(admin, id, 'select n from orders')).toEqual([{ n: 7 }]);
  expect((await backupsOf(admin)).map(({ origin }: any) => origin)).toEqual([]);
}, 180_000);

test('a managed database is saved before it is deleted, a stopped one too, and comes back in a new one', async () => {
  const { admin, environment } = await placeOn(app, 'host');
  const id = await deployedDatabase(admin, environment, POSTGRESQL);
  await ask(admin, id, 'create table kept as select 1 as n');
  await act(admin, id, 'stop', 'STOPPED');
  ok(await admin.delete(`/database/${id}`), 204);
  await expect.poll(async () => (await admin.get(`/database/${id}`)).status, { timeout: 60_000 }).toBe(404);
  const [last, ...more] = await backupsOf(admin);
  expect(more).toEqual([]);
  expect(last).toMatchObject({ origin: 'BEFORE_DELETE', status: { state: 'READY' }, database: { id } });
  expect(Date.parse(last.expires_at) - Date.now()).toBeGreaterThan(6 * 86_400_000);
  const next = await deployedDatabase(admin, environment, { ...POSTGRESQL, mode: 'CONTAINER' });
  expect((await restore(admin, next, last.id)).end).toMatchObject({ state: 'READY', error: null });
  expect(await ask(admin, next, 'select n from kept')).toEqual([{ n: 1 }]);
}, 180_000);
