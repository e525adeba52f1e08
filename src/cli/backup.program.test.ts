import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { pino } from 'pino';
import { afterAll, expect, inject, onTestFinished, test } from 'vitest';
import { createRuntimes } from '#app/runtimes.ts';
import { epochOf } from '#clusters/drift.ts';
import { databaseUrl, launchProgram, ON_FREE_PORTS, query, runProgram } from '#cli/testing.ts';
import { newId } from '#kernel/ids.ts';
import { readSettings } from '#platform/settings/index.ts';
import { createFakeRuntime } from '#runtimes/fake/index.ts';

const EXAMPLE = inject('example');
const home = mkdtempSync(path.join(tmpdir(), 'qd-backup-cli-'));
chmodSync(home, 0o755);
const made: string[] = [];

/** Settings of an installation with a data directory of its own on the fake runtime. */
function installation(name: string): Record<string, string> {
  const dataDir = path.join(home, name);
  mkdirSync(dataDir);
  made.push(dataDir);
  return {
    QUARTERDECK_DATA_DIR: dataDir,
    QUARTERDECK_LOCAL_GIT_ROOTS: path.dirname(EXAMPLE),
    ...ON_FREE_PORTS,
  };
}

afterAll(async () => {
  for (const dataDir of made) {
    const settings = readSettings({ QUARTERDECK_DATA_DIR: dataDir });
    await createRuntimes(settings, 'test', pino({ level: 'silent' })).endProxy();
  }
  rmSync(home, { recursive: true, force: true });
});

/** Starts the service and answers when it is ready; `ask` calls its API as the administrator. */
async function startService(settings: Record<string, string>, token?: string) {
  const service = launchProgram(['start'], settings);
  onTestFinished(async () => {
    service.kill('SIGKILL');
    await service.ended;
  });
  const text = await service.says(/token {8}in .*\n/);
  const url = /API +(\S+)/.exec(text)![1]!;
  const admin = token ?? readFileSync(path.join(settings.QUARTERDECK_DATA_DIR!, 'admin-token'), 'utf8').trim();
  const ask = async (method: string, at: string, body?: unknown) => {
    const answer = await fetch(url + at, {
      method,
      headers: { authorization: `Token ${admin}`, ...(body ? { 'content-type': 'application/json' } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const content = await answer.text();
    return { status: answer.status, body: content === '' ? undefined : JSON.parse(content) };
  };
  const end = async () => {
    service.kill('SIGTERM');
    expect(await service.ended, service.said.stderr).toBe(0);
  };
  return { ...service, ask, end, admin };
}

type Service = Awaited<ReturnType<typeof startService>>;

/** An application of the example; answers its id and its project's. */
async function makeExample(service: Service, name: string) {
  const organization = (await service.ask('GET', '/organization')).body.id;
  const project = await service.ask('POST', `/organization/${organization}/project`, { name });
  const environment = await service.ask('POST', `/project/${project.body.id}/environment`, { name, mode: 'STAGING' });
  const application = await service.ask('POST', `/environment/${environment.body.id}/application`, {
    name,
    git_repository: { url: EXAMPLE, branch: 'HEAD' },
    dockerfile_path: 'Dockerfile',
    ports: [{ internal_port: 3000, publicly_accessible: true, protocol: 'HTTP' }],
  });
  return { id: application.body.id as string, projectId: project.body.id as string };
}

async function deployExample(service: Service, name: string) {
  const made = await makeExample(service, name);
  expect((await service.ask('POST', `/application/${made.id}/deploy?wait=30`)).body.state).toBe('DEPLOYED');
  return made;
}

/** An application whose deployment does not get on, with a stop that waits behind it. */
async function deployStuck(service: Service, name: string) {
  const made = await makeExample(service, name);
  await service.ask('POST', `/application/${made.id}/environmentVariable`, { key: 'UNREADY', value: 'yes' });
  expect((await service.ask('POST', `/application/${made.id}/deploy`)).status).toBe(200);
  const state = async () => (await service.ask('GET', `/application/${made.id}/status`)).body.state;
  await expect.poll(state).toBe('DEPLOYING');
  expect((await service.ask('POST', `/application/${made.id}/stop`)).status).toBe(200);
  return made;
}

const fakeOf = (settings: Record<string, string>) =>
  createFakeRuntime({ directory: path.join(settings.QUARTERDECK_DATA_DIR!, 'fake') });

const context = () => ({ signal: new AbortController().signal, log: () => undefined });

test(
  'a backup of a running service restores read-only, says how the world differs, and goes on once it is accepted',
  { timeout: 240_000 },
  async () => {
    const settings = installation('whole');
    const file = path.join(home, 'whole.backup');
    const first = await startService(settings);
    const kept = await deployExample(first, 'kept');
    const lost = await deployExample(first, 'lost');
    const moved = await deployExample(first, 'moved');
    expect(
      (await first.ask('POST', `/application/${kept.id}/secret`, { key: 'PASSWORD', value: 'hunter22' })).status,
    ).toBe(201);
    const stuck = await deployStuck(first, 'stuck');
    const backup = await runProgram(['backup', '--output', file], settings);
    expect(backup, backup.stderr).toMatchObject({ status: 0 });
    expect(backup.stdout).toMatch(/Backed up \d+ rows .*\n.*The key of the vault is not in it/s);
    const content = readFileSync(file);
    const key = readFileSync(path.join(settings.QUARTERDECK_DATA_DIR!, 'vault.key'), 'utf8').trim();
    expect(content.includes(key) || content.includes(Buffer.from(key, 'base64'))).toBe(false);

    // After the backup the world goes on: one more, one again, one gone.
    const unknown = await deployExample(first, 'unknown');
    expect((await first.ask('POST', `/application/${moved.id}/redeploy?wait=30`)).body.state).toBe('DEPLOYED');
    await first.end();
    const runtime = fakeOf(settings);
    const lostOne = (await runtime.list!()).find(({ identity }) => identity.serviceId === lost.id)!;
    await runtime.remove(lostOne.identity, null, context());

    const postgres = path.join(settings.QUARTERDECK_DATA_DIR!, 'postgres');
    expect(await runProgram(['restore', file], settings)).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('not empty'),
    });
    rmSync(postgres, { recursive: true });
    const restored = await runProgram(['restore', file], settings);
    expect(restored, restored.stderr).toMatchObject({ status: 0 });
    expect(restored.stdout).toMatch(/1 deployments .* ended with an error.*The installation is read-only/s);
    const world = async () => JSON.parse((await runProgram(['world', '--json'], settings)).stdout);
    const named = (differences: { difference: string; serviceId: string }[]) =>
      Object.fromEntries(differences.map(({ serviceId, difference }) => [serviceId, difference]));
    const compared = await world();
    expect(named(compared.differences)).toEqual({ [unknown.id]: 'unknown', [moved.id]: 'newer', [lost.id]: 'missing' });
    expect(compared).toMatchObject({ alike: 1, unseen: [] });

    const second = await startService(settings, first.admin);
    await second.says(/READ-ONLY after a restore/);
    expect((await second.ask('GET', `/application/${kept.id}/status`)).body.state).toBe('DEPLOYED');
    expect((await second.ask('GET', `/application/${unknown.id}`)).status).toBe(404);
    for (const [method, at, body] of [
      ['POST', `/application/${kept.id}/deploy`, undefined],
      ['POST', `/application/${kept.id}/secret`, { key: 'OTHER', value: 'x' }],
      ['PUT', `/project/${kept.projectId}`, { name: 'renamed' }],
      ['DELETE', `/application/${kept.id}`, undefined],
    ] as const) {
      const answer = await second.ask(method, at, body);
      expect(answer).toMatchObject({
        status: 503,
        body: { status: 503, message: expect.stringContaining('quarterdeck restore --accept') },
      });
    }
    expect((await runProgram(['token', 'create', '--name', 'x', '--scope', 'READ'], settings)).stderr).toContain(
      'the installation is read-only',
    );

    const accepted = await runProgram(['restore', '--accept'], settings);
    expect(accepted, accepted.stderr).toMatchObject({ status: 0 });
    expect(accepted.stdout).toContain('1 requests that waited when the backup was made are cancelled');
    expect((await second.ask('GET', `/application/${stuck.id}/status`)).body.state).toBe('CANCELED');
    const history = (await second.ask('GET', `/application/${stuck.id}/deploymentHistoryV2`)).body.results;
    expect(history.map(({ status }: { status: string }) => status)).toEqual(['CANCELED', 'DEPLOYMENT_ERROR']);
    // The service that was started read-only goes on by itself, under a higher epoch.
    expect((await second.ask('POST', `/application/${kept.id}/deploy?wait=30`)).body.state).toBe('DEPLOYED');
    expect((await second.ask('POST', `/application/${moved.id}/redeploy?wait=30`)).body.state).toBe('DEPLOYED');
    const epochs = (await runtime.list!()).map(({ identity }) => [identity.serviceId, epochOf(identity.generation)]);
    expect(Object.fromEntries(epochs)).toEqual({ [kept.id]: 2, [moved.id]: 2, [unknown.id]: 1 });
    expect(named((await world()).differences)).toEqual({ [unknown.id]: 'unknown', [lost.id]: 'missing' });

    // What is missing starts when that is asked for, what is unknown goes when that is.
    expect(await runProgram(['world', '--remove-unknown', kept.id], settings)).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('nothing was removed'),
    });
    const changed = await runProgram(['world', '--apply-missing', '--remove-unknown', unknown.id], settings);
    expect(changed.stderr).toContain(`Removed unknown (${unknown.id})`);
    await second.end();
    const third = await startService(settings, first.admin);
    const runs = async () => new Map((await runtime.list!()).map((found) => [found.identity.serviceId, found.state]));
    await expect.poll(async () => (await runs()).get(lost.id)).toBe('running');
    expect((await runs()).has(unknown.id)).toBe(false);
    expect((await third.ask('GET', `/application/${lost.id}/status?wait=30`)).body.state).toBe('DEPLOYED');
    expect((await world()).differences).toEqual([]);
    expect(await runProgram(['audit', 'verify'], settings)).toMatchObject({ status: 0 });
    await third.end();
    expect(await runProgram(['restore', '--accept'], settings)).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('nothing to accept'),
    });
  },
);

/** An empty database on the server of this run, and settings of an installation that uses it. */
async function onServer(name: string): Promise<{ settings: Record<string, string>; config: pg.ClientConfig }> {
  const server = inject('postgres');
  const database = `cli_${name.replaceAll('-', '_')}_${newId().slice(0, 8)}`;
  await query(server, `create database ${database}`);
  onTestFinished(() => query(server, `drop database ${database} with (force)`).then(() => undefined));
  const dataDir = installation(name).QUARTERDECK_DATA_DIR!;
  const settings = {
    QUARTERDECK_DATA_DIR: dataDir,
    DATABASE_URL: databaseUrl(server, database),
    QUARTERDECK_VAULT_KEY_FILE: path.join(dataDir, 'vault.key'),
  };
  return { settings, config: { ...server, database } };
}

const writeKey = (settings: Record<string, string>, byte: number) =>
  writeFileSync(settings.QUARTERDECK_VAULT_KEY_FILE!, `${Buffer.alloc(32, byte).toString('base64')}\n`, {
    mode: 0o600,
  });

test(
  'a restore without the key, or with another one, is refused before anything is made',
  { timeout: 120_000 },
  async () => {
    const source = await onServer('source');
    const file = path.join(home, 'source.backup');
    writeKey(source.settings, 7);
    expect((await runProgram(['migrate'], source.settings)).status).toBe(0);
    expect((await runProgram(['backup', '--output', file], source.settings)).status).toBe(0);
    const target = await onServer('target');
    expect(await runProgram(['restore', file], target.settings)).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('The key of the vault is missing'),
    });
    writeKey(target.settings, 8);
    expect(await runProgram(['restore', file], target.settings)).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('not the one that the backup was made with'),
    });
    expect(await query(target.config, `select from pg_tables where schemaname = 'public'`)).toEqual([]);
    writeKey(target.settings, 7);
    expect(await runProgram(['restore', file], target.settings)).toMatchObject({ status: 0 });
  },
);

test('a restore that is killed is refused by a start, and done by the next restore', { timeout: 300_000 }, async () => {
  const source = await onServer('kill-source');
  const file = path.join(home, 'kill.backup');
  writeKey(source.settings, 7);
  expect((await runProgram(['migrate'], source.settings)).status).toBe(0);
  await query(
    source.config,
    `insert into user_account (id, first_name) select gen_random_uuid(), repeat(md5(n::text), 100) from generate_series(1, 20000) n`,
  );
  expect((await runProgram(['backup', '--output', file], source.settings)).status).toBe(0);
  const { settings, config } = await onServer('kill-target');
  writeKey(settings, 7);
  const marked = `select from pg_tables where tablename = 'restore_unfinished'`;
  const copying = `select from pg_stat_activity where datname = current_database() and state = 'active' and query like 'copy "user_account"%'`;
  const checking = `select from pg_stat_activity where datname = current_database() and query like 'alter table%add constraint%'`;
  // A connection for each look would miss moments on a busy machine.
  const watcher = new pg.Client(config);
  await watcher.connect();
  onTestFinished(() => watcher.end());
  for (const moment of [marked, copying, checking]) {
    const restore = launchProgram(['restore', file], settings);
    await expect.poll(async () => (await watcher.query(moment)).rowCount, { timeout: 90_000, interval: 2 }).not.toBe(0);
    restore.kill('SIGKILL');
    await restore.ended;
    const migrate = await runProgram(['migrate'], settings);
    expect(migrate).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('run `quarterdeck restore FILE` again'),
    });
  }
  expect(await runProgram(['restore', file], settings)).toMatchObject({ status: 0 });
  expect(await query(config, 'select count(*)::int as n from user_account')).toEqual([{ n: 20_000 }]);
  expect((await runProgram(['migrate'], settings)).stdout).toContain('nothing to do');
});
