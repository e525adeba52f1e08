import { beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { BackupWorker } from '#services/kinds/database/backups/worker.ts';
import { usePreviews } from '#services/previews/previews.fixture.ts';
import { commit } from '#services/pushes/pushes.fixture.ts';
import type { Handle } from '#runtimes/runtime.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { useEngine } from '#test/harness/engine.ts';

const app = useApp();
const engine = useEngine(app, {}, undefined, { pretendsSources: true });
const { webhookOf, sourceOf, setRule, tell, worker, settled, servicesOf } = usePreviews(app);

/** Content of each database, by the id of its service; undefined is empty. */
const contents = new Map<string, string>();
/** Services in the order in which they were applied, and databases in that in which they were filled. */
const events: string[] = [];
let failure: string | null = null;
const nodeId = newId();

beforeAll(async () => {
  const { runtime } = engine;
  const submit = runtime.submit.bind(runtime);
  runtime.submit = async (spec, context) => {
    const handle = await submit(spec, context);
    events.push(`applied ${spec.displayName}`);
    return handle;
  };
  runtime.exec = async ({ identity }: Handle, request) => {
    const { serviceId } = identity;
    if (failure !== null) return { exitCode: 1, stderr: failure };
    if (request.stdin) {
      let content = '';
      for await (const part of request.stdin) content += String(part);
      contents.set(serviceId, content);
      events.push(`filled ${serviceId}`);
    } else if (request.command.includes('pg_dump')) request.stdout.write(contents.get(serviceId) ?? 'nothing');
    return { exitCode: 0, stderr: '' };
  };
  await app.db.insertInto('node').values({ id: nodeId, name: nodeId }).execute();
});
beforeEach(() => {
  failure = null;
});

/** Runs the worker that makes backups. */
function startBackups(): void {
  const runtimes = { runtimeOf: async () => engine.runtime };
  const backups = new BackupWorker({ platform: app.platform, nodeId, runtimes, pollMs: 20 });
  backups.start();
  onTestFinished(() => backups.stop());
}

interface Source {
  admin: Actor;
  environment: string;
  hook: string;
  database: string;
}

/** Makes an environment with an application and a database that runs, whose previews start with this content. */
async function source(preview_databases: string, environmentMode?: string): Promise<Source> {
  startBackups();
  worker();
  const admin = await app.organization();
  const rule = { auto_preview: true, preview_databases };
  const { environment } = await sourceOf(admin, {}, rule);
  if (environmentMode) ok(await admin.put(`/environment/${environment}`, { mode: environmentMode }), 200);
  const body = { name: 'store', type: 'POSTGRESQL', version: '16', mode: 'CONTAINER' };
  const { id } = ok(await admin.post(`/environment/${environment}/database`, body), 201);
  expect(ok(await admin.post(`/environment/${environment}/deploy?wait=60`), 200).state).toBe('DEPLOYED');
  return { admin, environment, hook: await webhookOf(admin), database: id };
}

async function backUp({ admin, database }: Source, content: string): Promise<void> {
  contents.set(database, content);
  const { id } = ok(await admin.post(`/database/${database}/backup`, { name: 'b', message: '' }), 201);
  await expect.poll(async () => ok(await admin.get(`/databaseBackup/${id}`), 200).status.state).toBe('READY');
}

/** Opens a pull request; returns its preview, once that is deployed or has failed, with its services by name. */
async function preview({ admin, hook }: Source, state = 'DEPLOYED') {
  events.length = 0;
  ok(await tell(hook, { head: commit('a') }), 202);
  const [made] = await settled(admin);
  expect(made).toMatchObject({ outcome: 'PREVIEWED', error: null });
  const id = made!.environment_id!;
  expect(ok(await admin.get(`/environment/${id}/status?wait=60`), 200).state).toBe(state);
  const { store, web } = await servicesOf(id);
  return { id, store: store!.id, web };
}

const linesOf = async (admin: Actor, environment: string): Promise<string> =>
  ok(await admin.get(`/environment/${environment}/logs`), 200)
    .map((line: any) => line.message.safe_message)
    .join('\n');
const backupsOf = async ({ admin, database }: Source) =>
  ok(await admin.get(`/database/${database}/backup`), 200).results;

test('the database of a preview has the content of the last backup before the application is deployed, and keeps its own then', async () => {
  const here = await source('LAST_BACKUP');
  await backUp(here, 'first');
  await backUp(here, 'second');
  contents.set(here.database, 'changed since');
  const { id, store, web } = await preview(here);
  expect(contents.get(store)).toBe('second');
  expect(events).toEqual(['applied store', `filled ${store}`, 'applied web']);
  expect(await linesOf(here.admin, id)).toMatch(
    /Loading the content of store from its backup of .*Z\.\nThe content is loaded\./,
  );
  contents.set(store, 'own');
  expect(ok(await here.admin.post(`/environment/${id}/deploy?wait=60`), 200).state).toBe('DEPLOYED');
  expect(contents.get(store)).toBe('own');
  expect(web).toBeDefined();
  expect(await backupsOf(here)).toHaveLength(2);
});

test('a copy has what the database holds now, and the backup that was made for it is gone then', async () => {
  const here = await source('COPY');
  await backUp(here, 'old');
  contents.set(here.database, 'of now');
  const { store } = await preview(here);
  expect(contents.get(store)).toBe('of now');
  expect((await backupsOf(here)).map(({ origin }: any) => origin)).toEqual(['MANUAL']);
});

test('a database that does not run is copied from its last backup', async () => {
  const here = await source('COPY');
  await backUp(here, 'saved');
  ok(await here.admin.post(`/database/${here.database}/stop?wait=60`), 200);
  const { store } = await preview(here);
  expect(contents.get(store)).toBe('saved');
});

test('without a backup, and without the setting, the database starts empty', async () => {
  const without = await source('LAST_BACKUP');
  const first = await preview(without);
  expect(contents.has(first.store)).toBe(false);
  expect(await linesOf(without.admin, first.id)).toContain('store has no backup: the database starts empty.');
  const plain = await source('EMPTY');
  await backUp(plain, 'saved');
  expect(contents.has((await preview(plain)).store)).toBe(false);
});

test('what cannot be loaded fails the database and what needs it, with the reason; the next deployment loads it', async () => {
  const here = await source('LAST_BACKUP');
  await backUp(here, 'saved');
  failure = 'the disk is full';
  const { id, store } = await preview(here, 'DEPLOYMENT_ERROR');
  expect(events).toEqual(['applied store']);
  expect(ok(await here.admin.get(`/database/${store}/status`), 200).error.message).toContain('the disk is full');
  failure = null;
  expect(ok(await here.admin.post(`/environment/${id}/deploy?wait=60`), 200).state).toBe('DEPLOYED');
  expect(contents.get(store)).toBe('saved');
});

test('a backup for a copy that fails is told, nothing is deployed behind an empty database, and the next deployment has another', async () => {
  const here = await source('COPY');
  failure = 'the server is away';
  const { id, store } = await preview(here, 'DEPLOYMENT_ERROR');
  expect(ok(await here.admin.get(`/database/${store}/status`), 200).error.message).toMatch(
    /The content of store cannot be copied, as its backup failed: .*the server is away.* Deploy again: another one is made\./,
  );
  expect(events).toEqual(['applied store']);
  const waiting = async () => (await backupsOf(here)).filter(({ status }: any) => status.state !== 'DEPLOYMENT_ERROR');
  // The one that was asked for since fails as well, and another is made.
  await expect.poll(async () => (await waiting()).length).toBe(0);
  ok(await here.admin.post(`/environment/${id}/deploy?wait=60`), 200);
  failure = null;
  contents.set(here.database, 'of now');
  await expect
    .poll(async () => {
      const { state } = ok(await here.admin.post(`/environment/${id}/deploy?wait=60`), 200);
      return state;
    })
    .toBe('DEPLOYED');
  expect(contents.get(store)).toBe('of now');
});

test('data of a PRODUCTION environment does not leave it: it has no preview until the setting is EMPTY', async () => {
  const here = await source('LAST_BACKUP', 'PRODUCTION');
  await backUp(here, 'of customers');
  ok(await tell(here.hook, { head: commit('a') }), 202);
  const [refused] = await settled(here.admin);
  expect(refused).toMatchObject({
    environment_id: null,
    error: expect.stringMatching(/PRODUCTION.*preview_databases/),
  });
  await setRule(here.admin, here.environment, { auto_preview: true, preview_databases: 'EMPTY' });
  ok(await tell(here.hook, { action: 'synchronize', head: commit('b'), at: 1 }), 202);
  const [made] = await settled(here.admin);
  const { store } = await servicesOf(made!.environment_id!);
  expect([made!.error, contents.has(store!.id)]).toEqual([null, false]);
});

test('a database that was deployed before it could be filled stays as it is', async () => {
  const here = await source('LAST_BACKUP');
  await backUp(here, 'saved');
  const { id, store } = await preview(here);
  contents.set(store, 'own');
  await app.db.updateTable('database_fill').set({ ended_at: null }).where('database_id', '=', store).execute();
  expect(ok(await here.admin.post(`/environment/${id}/deploy?wait=60`), 200).state).toBe('DEPLOYED');
  expect(contents.get(store)).toBe('own');
  expect(await linesOf(here.admin, id)).toContain(
    'It was deployed before it could be filled with the content of store',
  );
});
