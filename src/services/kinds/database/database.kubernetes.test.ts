import type { Server } from 'node:net';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { createKubernetesRuntime } from '#runtimes/kubernetes/index.ts';
import { leftoversOf, makeVolumes, openCluster, removeMade } from '#runtimes/kubernetes/testing.ts';
import type { Handle, Runtime } from '#runtimes/runtime.ts';
import type { ServiceKind } from '#services/service/holder.ts';
import { ok, startTestApp, type Actor, type TestApp } from '#test/harness/app.ts';
import { makeableImages, pushServerImage } from '#test/harness/database-images.ts';
import { act, backUp, deployedDatabase, placeOn, restore, useDatabases } from '#test/harness/databases.ts';
import { letPull } from '#test/harness/kubernetes-registry.ts';
import { ALLOW_LOOPBACK, startRegistry, type TestRegistry } from '#test/harness/registry.ts';

const environment = inject('kubernetes');
const versions = makeableImages();
const app = {} as TestApp;
let registry: TestRegistry;
let forwarder: Server | undefined;
let cluster: ReturnType<typeof openCluster>['cluster'];
let made: Promise<Runtime> | undefined;
const runtimeOf = (): Promise<Runtime> =>
  (made ??= Promise.resolve(createKubernetesRuntime(openCluster(environment, app.installationId).options)));

beforeAll(async () => {
  registry = await startRegistry();
  if (environment.directory !== null) forwarder = await letPull(environment, registry);
  if (versions.POSTGRESQL) await pushServerImage(registry, 'POSTGRESQL');
  if (versions.REDIS) await pushServerImage(registry, 'REDIS');
  const settings = { ...ALLOW_LOOPBACK, QUARTERDECK_DATABASE_IMAGE_PREFIX: `${registry.host}/library/` };
  Object.assign(app, await startTestApp(settings, { runtimeOf }));
  cluster = openCluster(environment, app.installationId).cluster;
  await makeVolumes(cluster, 3);
}, 120_000);
// Entered before the workers, so that it is done after they have ended.
afterAll(async () => {
  await removeMade(cluster);
  await cluster.connection.close();
  await app.close();
  forwarder?.close();
  await registry.stop();
}, 60_000);
useDatabases(app, runtimeOf);

const KIND: ServiceKind = 'DATABASE';

/** Runs a client beside the server, with the master credentials; answers what it printed. */
async function client(admin: Actor, id: string, command: string[], variable: string): Promise<string> {
  const { password } = ok(await admin.get(`/database/${id}/masterCredentials`), 200);
  const { handle } = await app.db
    .selectFrom('service')
    .select('handle')
    .where('id', '=', id)
    .where('kind', '=', KIND)
    .executeTakeFirstOrThrow();
  const stdout = new PassThrough();
  const printed = text(stdout);
  const request = { command, environment: { [variable]: password }, stdout };
  const end = await (await runtimeOf()).exec!(handle as Handle, request, AbortSignal.timeout(30_000));
  stdout.end();
  expect(end, JSON.stringify(command)).toEqual({ exitCode: 0, stderr: expect.any(String) });
  return (await printed).trim();
}

const asked = (type: 'POSTGRESQL' | 'REDIS') => ({ type, version: versions[type], accessibility: 'PRIVATE', cpu: 100 });

describe.skipIf(!versions.POSTGRESQL || environment.directory === null)('a managed PostgreSQL on Kubernetes', () => {
  const psql = (admin: Actor, id: string, statement: string) => {
    const program = ['psql', '--host=127.0.0.1', '--username=postgres', '--dbname=app', '--tuples-only', '--no-align'];
    return client(admin, id, [...program, `--command=${statement}`], 'PGPASSWORD');
  };

  test(
    'keeps what was written over redeploy and restart; a backup brings it back, here and elsewhere, and none is lost with it',
    { timeout: 240_000 },
    async () => {
      const { admin, environment: place } = await placeOn(app, 'kubernetes');
      const id = await deployedDatabase(admin, place, asked('POSTGRESQL'));
      await psql(admin, id, "create table orders as select n, repeat('x', 500) as t from generate_series(1, 10000) n");
      await act(admin, id, 'redeploy', 'DEPLOYED');
      await act(admin, id, 'restart-service', 'RESTARTED');
      expect(await psql(admin, id, 'select count(*) from orders')).toBe('10000');

      const backup = await backUp(admin, id);
      expect(backup).toMatchObject({ error: null, format: 'pg_dump', status: { state: 'READY' } });
      await psql(admin, id, 'drop table orders');
      await psql(admin, id, 'create table later (n integer)');
      const { plan, end } = await restore(admin, id, backup.id);
      expect(plan.replaces).toEqual([{ name: 'public.later', amount: expect.stringMatching(/bytes$/) }]);
      expect(end).toMatchObject({ state: 'READY', error: null });
      expect(await psql(admin, id, 'select count(*) from orders')).toBe('10000');

      const second = await deployedDatabase(admin, place, asked('POSTGRESQL'));
      expect((await restore(admin, second, backup.id)).end).toMatchObject({ state: 'READY', error: null });
      expect(await psql(admin, second, 'select sum(length(t)) from orders')).toBe('5000000');

      // A stopped one is started for its last backup.
      await act(admin, second, 'stop', 'STOPPED');
      ok(await admin.delete(`/database/${second}`), 204);
      await expect.poll(async () => (await admin.get(`/database/${second}`)).status, { timeout: 90_000 }).toBe(404);
      const { results } = ok(await admin.get(`/organization/${admin.organizationId}/databaseBackup`), 200);
      expect(results[0]).toMatchObject({
        origin: 'BEFORE_DELETE',
        status: { state: 'READY' },
        database: { id: second },
      });
      const ofSecond = { serviceId: second } as Parameters<typeof leftoversOf>[1];
      await expect.poll(() => leftoversOf(cluster, ofSecond), { timeout: 30_000 }).toEqual([]);
    },
  );
});

describe.skipIf(!versions.REDIS || environment.directory === null)('a managed Redis on Kubernetes', () => {
  const redis = (admin: Actor, id: string, ...args: string[]) =>
    client(admin, id, ['redis-cli', '-e', '-h', '127.0.0.1', ...args], 'REDISCLI_AUTH');

  test('is brought back by a backup', { timeout: 120_000 }, async () => {
    const { admin, environment: place } = await placeOn(app, 'kubernetes');
    const id = await deployedDatabase(admin, place, asked('REDIS'));
    await redis(admin, id, 'set', 'kept', 'v');
    const backup = await backUp(admin, id);
    expect(backup).toMatchObject({ error: null, format: 'rdb' });
    await redis(admin, id, 'flushall');
    await redis(admin, id, 'set', 'later', 'w');
    const { plan, end } = await restore(admin, id, backup.id);
    expect(plan.replaces).toEqual([{ name: 'db0', amount: '1 keys' }]);
    expect(end).toMatchObject({ state: 'READY', error: null });
    expect(await redis(admin, id, 'keys', '*')).toBe('kept');
  });
});
