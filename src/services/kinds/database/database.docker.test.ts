import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { MemoryRouter } from '#runtimes/contract/memory-router.ts';
import { createDockerRuntime } from '#runtimes/docker/index.ts';
import type { Handle, Runtime } from '#runtimes/runtime.ts';
import type { ServiceKind } from '#services/service/holder.ts';
import { ok, startTestApp, type Actor, type TestApp } from '#test/harness/app.ts';
import { makeableImages, pushServerImages } from '#test/harness/database-images.ts';
import { act, backUp, deployedDatabase, placeOn, restore, useDatabases } from '#test/harness/databases.ts';
import { ALLOW_LOOPBACK, startRegistry, type TestRegistry } from '#test/harness/registry.ts';

const versions = makeableImages();
const { socketPath } = inject('docker');
const dataDir = mkdtempSync(path.join(tmpdir(), 'qd-docker-'));
const app = {} as TestApp;
let registry: TestRegistry;
let made: Promise<Runtime> | undefined;
const runtimeOf = (): Promise<Runtime> =>
  (made ??= createDockerRuntime({
    socketPath,
    installation: app.installationId,
    router: new MemoryRouter(),
    dataDir,
    log: () => undefined,
  }));

beforeAll(async () => {
  registry = await startRegistry();
  await pushServerImages(socketPath, registry.host);
  const settings = { ...ALLOW_LOOPBACK, QUARTERDECK_DATABASE_IMAGE_PREFIX: `${registry.host}/library/` };
  Object.assign(app, await startTestApp(settings, { runtimeOf }));
}, 300_000);
// Entered before the workers, so that it is done after they have ended.
afterAll(async () => {
  await app.close();
  await registry.stop();
  rmSync(dataDir, { recursive: true });
});
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

const remove = async (admin: Actor, ...ids: string[]) => {
  for (const id of ids) ok(await admin.delete(`/database/${id}?skipReconcile=true`), 204);
  for (const id of ids)
    await expect.poll(async () => (await admin.get(`/database/${id}`)).status, { timeout: 90_000 }).toBe(404);
};

describe.skipIf(!versions.POSTGRESQL)('PostgreSQL in its image', () => {
  const body = { type: 'POSTGRESQL', version: versions.POSTGRESQL };

  async function ask(admin: Actor, id: string, statement: string): Promise<Record<string, unknown>[]> {
    const { port, login: user, password } = ok(await admin.get(`/database/${id}/masterCredentials`), 200);
    const connection = new pg.Client({ host: '127.0.0.1', port, user, password, database: 'app' });
    await connection.connect();
    try {
      return (await connection.query(statement)).rows;
    } finally {
      await connection.end();
    }
  }

  test('keeps what was written over redeploy, restart, stop and edit; a backup brings it back, here and elsewhere', async () => {
    const { admin, environment } = await placeOn(app, 'docker');
    const id = await deployedDatabase(admin, environment, body);
    await ask(admin, id, "create table orders as select n, repeat('x', 100) as t from generate_series(1, 10000) n");
    await act(admin, id, 'redeploy', 'DEPLOYED');
    await act(admin, id, 'restart-service', 'RESTARTED');
    await act(admin, id, 'stop', 'STOPPED');
    ok(await admin.put(`/database/${id}`, { memory: 640 }), 200);
    await act(admin, id, 'deploy', 'DEPLOYED');
    expect(await ask(admin, id, 'select count(*)::int as n from orders')).toEqual([{ n: 10000 }]);

    const backup = await backUp(admin, id);
    expect(backup).toMatchObject({ error: null, format: 'pg_dump', status: { state: 'READY' } });
    await ask(admin, id, 'drop table orders');
    await ask(admin, id, 'create table later (n integer)');
    const { plan, end } = await restore(admin, id, backup.id);
    expect(plan.replaces).toEqual([{ name: 'public.later', amount: expect.stringMatching(/bytes$/) }]);
    expect(end).toMatchObject({ state: 'READY', error: null });
    expect(await ask(admin, id, 'select count(*)::int as n from orders')).toEqual([{ n: 10000 }]);
    await expect(ask(admin, id, 'select * from later')).rejects.toThrow(/does not exist/);
    const second = await deployedDatabase(admin, environment, body);
    expect((await restore(admin, second, backup.id)).end).toMatchObject({ state: 'READY', error: null });
    expect(await ask(admin, second, 'select count(*)::int as n from orders')).toEqual([{ n: 10000 }]);
    const dump = ok(await admin.get(`/databaseBackup/${backup.id}/download`), 200) as unknown as string;
    expect(dump.slice(0, 5)).toBe('PGDMP');

    ok(await admin.delete(`/database/${second}`), 204);
    await expect.poll(async () => (await admin.get(`/database/${second}`)).status, { timeout: 90_000 }).toBe(404);
    const backups = ok(await admin.get(`/organization/${admin.organizationId}/databaseBackup`), 200).results;
    expect(backups[0]).toMatchObject({ origin: 'BEFORE_DELETE', status: { state: 'READY' }, database: { id: second } });
    await remove(admin, id);
  }, 300_000);
});

describe.skipIf(!versions.REDIS)('Redis in its image', () => {
  const cli = ['redis-cli', '-e', '-h', '127.0.0.1'];
  const redis = (admin: Actor, id: string, ...args: string[]) => client(admin, id, [...cli, ...args], 'REDISCLI_AUTH');

  test('keeps what was written over a redeploy, and a backup brings it back', async () => {
    const { admin, environment } = await placeOn(app, 'docker');
    const id = await deployedDatabase(admin, environment, { type: 'REDIS', version: versions.REDIS });
    await redis(admin, id, 'set', 'kept', 'v');
    await act(admin, id, 'redeploy', 'DEPLOYED');
    expect(await redis(admin, id, 'get', 'kept')).toBe('v');
    const backup = await backUp(admin, id);
    expect(backup).toMatchObject({ error: null, format: 'rdb' });
    await redis(admin, id, 'flushall');
    await redis(admin, id, 'set', 'later', 'w');
    const { plan, end } = await restore(admin, id, backup.id);
    expect(plan.replaces).toEqual([{ name: 'db0', amount: '1 keys' }]);
    expect(end).toMatchObject({ state: 'READY', error: null });
    await act(admin, id, 'restart-service', 'RESTARTED');
    expect(await redis(admin, id, 'keys', '*')).toBe('kept');
    await remove(admin, id);
  }, 300_000);
});

describe.skipIf(!versions.MYSQL)('MySQL in its image', () => {
  const mysql = (admin: Actor, id: string, statement: string) => {
    const at = ['mysql', '--host=127.0.0.1', '--user=root', '--batch', '--skip-column-names'];
    return client(admin, id, [...at, `--execute=${statement}`, 'app'], 'MYSQL_PWD');
  };

  test('keeps what was written over a redeploy, and a backup brings it back', async () => {
    const { admin, environment } = await placeOn(app, 'docker');
    const id = await deployedDatabase(admin, environment, { type: 'MYSQL', version: versions.MYSQL });
    await mysql(admin, id, "create table kept (t text); insert into kept values ('é')");
    await act(admin, id, 'redeploy', 'DEPLOYED');
    expect(await mysql(admin, id, 'select count(*) from kept')).toBe('1');
    const backup = await backUp(admin, id);
    expect(backup).toMatchObject({ error: null, format: 'mysqldump' });
    await mysql(admin, id, 'drop table kept; create table later (n int)');
    const { plan, end } = await restore(admin, id, backup.id);
    expect(plan.replaces.map((one: any) => one.name)).toEqual(['later']);
    expect(end).toMatchObject({ state: 'READY', error: null });
    expect(await mysql(admin, id, 'show tables')).toBe('kept');
    await remove(admin, id);
  }, 300_000);
});
