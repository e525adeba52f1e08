import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { pino } from 'pino';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { createRuntimes } from '#app/runtimes.ts';
import { launchProgram, ON_FREE_PORTS, runProgram } from '#cli/testing.ts';
import { newContext } from '#runtimes/contract/fixture.ts';
import type { Manifest } from '#platform/backup/format.ts';
import { packInstallation } from '#platform/move/archive.ts';
import { readSettings } from '#platform/settings/index.ts';
import { MADE_IMAGES } from '#test/harness/made-images.ts';
import { removeEverything } from '#test/harness/remove-everything.ts';
import { makeRepositoryRoot } from '#test/harness/repository.ts';

const home = realpathSync(mkdtempSync(path.join(tmpdir(), 'qd-move-')));
chmodSync(home, 0o755);
const repositories = makeRepositoryRoot();
const made: string[] = [];

/** Settings of an installation with a data directory of its own, on the host runtime. */
function installation(name: string, changes: Record<string, string> = {}): Record<string, string> {
  const dataDir = path.join(home, name);
  made.push(dataDir);
  return {
    ...ON_FREE_PORTS,
    ...MADE_IMAGES,
    QUARTERDECK_DATA_DIR: dataDir,
    QUARTERDECK_LOCAL_GIT_ROOTS: repositories.folder,
    QUARTERDECK_TERRAFORM_STATE_PORT: '0',
    ...changes,
  };
}

const dataDirOf = (settings: Record<string, string>): string => settings.QUARTERDECK_DATA_DIR!;

afterAll(async () => {
  for (const dataDir of made) {
    if (!existsSync(dataDir)) continue;
    const settings = readSettings({ QUARTERDECK_DATA_DIR: dataDir });
    const runtimes = createRuntimes(settings, installationOf(dataDir), pino({ level: 'silent' }));
    await removeEverything(await runtimes.onMachine('host'));
    await runtimes.close();
    await runtimes.endProxy();
  }
  rmSync(home, { recursive: true, force: true });
  repositories.remove();
});

/** Id of the installation, as what it runs has it; `none` where nothing runs. */
function installationOf(dataDir: string): string {
  const services = path.join(dataDir, 'host', 'services');
  if (!existsSync(services)) return 'none';
  const files = readdirSync(services, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.json'));
  const ids = files.flatMap(
    (name) => /"installation":"([^"]+)"/.exec(readFileSync(path.join(services, name), 'utf8'))?.[1] ?? [],
  );
  return ids[0] ?? 'none';
}

/** Removes what an installation has on this machine outside of its data directory, as if it were on another machine. */
async function leaveMachine(settings: Record<string, string>): Promise<void> {
  const id = installationOf(dataDirOf(settings));
  const runtimes = createRuntimes(readSettings(settings), id, pino({ level: 'silent' }));
  const host = await runtimes.onMachine('host');
  for (const { identity } of await host.list!()) {
    await host.stop(identity, null, newContext());
    await host.removeEnvironment!(identity);
  }
  await runtimes.close();
}

async function startService(settings: Record<string, string>) {
  const service = launchProgram(['start'], settings);
  onTestFinished(async () => {
    service.kill('SIGKILL');
    await service.ended;
  });
  const said = await service.says(/token {8}in .*\n/);
  const url = /API +(\S+)/.exec(said)![1]!;
  const proxyPort = Number(/services .*:(\d+) /.exec(said)![1]);
  const token = readFileSync(path.join(dataDirOf(settings), 'admin-token'), 'utf8').trim();
  const ask = async (method: string, at: string, body?: unknown) => {
    const answer = await fetch(url + at, {
      method,
      headers: { authorization: `Token ${token}`, ...(body ? { 'content-type': 'application/json' } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const content = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${at} was answered ${answer.status}: ${content}`);
    return content === '' ? undefined : JSON.parse(content);
  };
  const end = async () => {
    service.kill('SIGTERM');
    expect(await service.ended, service.said.stderr).toBe(0);
  };
  /** Answer of a deployed service; null as long as it does not run. */
  const page = (id: string, route = '/') =>
    new Promise<string | null>((resolve, reject) => {
      const headers = { host: `app-z${id.slice(0, 8)}.localhost` };
      const sent = get({ host: '127.0.0.1', port: proxyPort, path: route, headers, agent: false }, (response) =>
        text(response).then((body) => resolve(response.statusCode === 200 ? body : null), reject),
      );
      sent.on('error', () => resolve(null));
    });
  return { ...service, ask, end, page };
}

type Service = Awaited<ReturnType<typeof startService>>;

/** Server that keeps what it is sent in its storage. */
const SERVER = `
const { createServer } = require('node:http');
const fs = require('node:fs');
createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url, 'http://x');
  if (pathname === '/keep') fs.appendFileSync('/data/kept', searchParams.get('text') + '\\n', { mode: 0o640 });
  response.end(fs.existsSync('/data/kept') ? fs.readFileSync('/data/kept') : 'nothing');
}).listen(8080);`;

/** Deploys an application with storage; answers its id. */
async function deploy(service: Service, name: string): Promise<string> {
  const repository = repositories.make();
  repository.commit({
    Dockerfile: 'FROM node:24-alpine\nCOPY server.js /server.js\nCMD ["node", "/server.js"]\n',
    'server.js': SERVER,
  });
  const organization = (await service.ask('GET', '/organization')).results[0].id;
  const project = await service.ask('POST', `/organization/${organization}/project`, { name });
  const environment = await service.ask('POST', `/project/${project.id}/environment`, { name });
  const application = await service.ask('POST', `/environment/${environment.id}/application`, {
    name,
    build_mode: 'DOCKER',
    dockerfile_path: 'Dockerfile',
    git_repository: { url: repository.url, branch: 'main' },
    ports: [{ internal_port: 8080, publicly_accessible: true, protocol: 'HTTP' }],
    storage: [{ mount_point: '/data', size: 1, type: 'FAST_SSD' }],
    healthchecks: {},
  });
  const status = await service.ask('POST', `/application/${application.id}/deploy?wait=60`);
  expect(status).toMatchObject({ state: 'DEPLOYED' });
  return application.id;
}

const MIB = 2 ** 20;

test(
  'an installation is packed, unpacked elsewhere and started, and its service runs there with what it had stored',
  { timeout: 300_000 },
  async () => {
    const old = installation('old', { QUARTERDECK_RUNTIME: 'host' });
    const file = path.join(home, 'whole.move');
    const first = await startService(old);
    const id = await deploy(first, 'kept');
    const idle = await deploy(first, 'idle');
    await first.ask('POST', `/application/${idle}/stop?wait=30`);
    await first.ask('POST', `/application/${id}/secret`, { key: 'PASSWORD', value: 'hunter22' });
    expect(await first.page(id, '/keep?text=one')).toBe('one\n');
    const volumes = path.join(dataDirOf(old), 'volumes');
    const data = readdirSync(volumes)
      .map((name) => path.join(volumes, name, 'data'))
      .find((folder) => existsSync(path.join(folder, 'kept')))!;
    const { uid } = statSync(path.join(data, 'kept'));
    writeFileSync(path.join(data, 'sparse'), 'begin');
    truncateSync(path.join(data, 'sparse'), 4096 * MIB);
    symlinkSync('/etc/hostname', path.join(data, 'link'));
    linkSync(path.join(data, 'kept'), path.join(data, 'same'));
    writeFileSync(path.join(data, 'program'), 'x');
    chmodSync(path.join(data, 'program'), 0o4751);
    utimesSync(path.join(data, 'program'), 1_000_000_000, 1_000_000_000.25);
    execFileSync('mkfifo', ['-m', '600', path.join(data, 'pipe')]);

    const refused = await runProgram(['move', 'pack', file], {
      ...old,
      QUARTERDECK_OPERATIONS_PORT: /operations +http:\/\/[^:]+:(\d+)/.exec(first.said.stdout)![1]!,
      QUARTERDECK_PORT: '1',
    });
    expect(refused).toMatchObject({ status: 1, stderr: expect.stringContaining('The service runs: stop it first') });
    // The ports of the settings are free ones: the heartbeat tells of it.
    expect(await runProgram(['move', 'pack', file], old)).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('It shows signs of life on the machine'),
    });
    expect(await first.page(id)).toBe('one\n');
    await first.end();

    const packed = await runProgram(['move', 'pack', file], old);
    expect(packed, packed.stderr).toMatchObject({ status: 0 });
    expect(packed.stdout).toMatch(/Packed into .* and 2 volumes\.\nIt is as secret as the key of the vault/);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(file).size).toBeLessThan(100 * MIB);
    expect(readdirSync(home).filter((name) => name.endsWith('.part'))).toEqual([]);
    for (const args of [['start'], ['demo']])
      expect(await runProgram(args, old)).toMatchObject({
        status: 1,
        stderr: expect.stringMatching(/The service does not start: this installation was moved away at .*move undo/),
      });
    expect(await runProgram(['move', 'pack', `${file}2`], old)).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('this installation was moved away'),
    });
    expect(existsSync(`${file}2`)).toBe(false);

    const fresh = installation('new', { QUARTERDECK_RUNTIME: 'host' });
    const unpacked = await runProgram(['move', 'unpack', file], fresh);
    expect(unpacked, unpacked.stderr).toMatchObject({ status: 0 });
    expect(unpacked.stdout).toContain('What ran is deployed by itself');
    const again = path.join(dataDirOf(fresh), path.relative(dataDirOf(old), data));
    const found = (name: string) => statSync(path.join(again, name));
    expect(found('sparse')).toMatchObject({ size: 4096 * MIB });
    expect(found('sparse').blocks * 512).toBeLessThan(MIB);
    expect(found('kept')).toMatchObject({ uid, gid: uid, ino: found('same').ino });
    expect(found('kept').mode & 0o7777).toBe(0o640);
    expect(found('program').mode & 0o7777).toBe(0o4751);
    expect(found('program').mtimeMs).toBe(1_000_000_000_250);
    expect(found('pipe').isFIFO()).toBe(true);
    expect(execFileSync('readlink', [path.join(again, 'link')], { encoding: 'utf8' })).toBe('/etc/hostname\n');

    await leaveMachine(old);
    const second = await startService(fresh);
    await expect.poll(() => second.page(id), { timeout: 120_000, interval: 500 }).toBe('one\n');
    expect(await second.page(id, '/keep?text=two')).toBe('one\ntwo\n');
    expect((await second.ask('GET', `/application/${idle}/status`)).state).toBe('STOPPED');
    const secrets = (await second.ask('GET', `/application/${id}/secret`)).results;
    expect(secrets.map(({ key }: { key: string }) => key)).toContain('PASSWORD');
    expect(await runProgram(['audit', 'verify'], fresh)).toMatchObject({ status: 0 });
    await second.end();
    expect(existsSync(path.join(dataDirOf(fresh), 'move'))).toBe(false);

    expect(await runProgram(['move', 'unpack', file], fresh)).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/there is an installation already \(.*node-id/),
    });
    // Given up after all, the old one starts again with what it had.
    const undone = await runProgram(['move', 'undo'], old);
    expect(undone).toMatchObject({ status: 0, stdout: expect.stringContaining(`Delete ${file}`) });
    expect(await runProgram(['move', 'undo'], old)).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('nothing to undo'),
    });
    await leaveMachine(fresh);
    const third = await startService(old);
    await expect.poll(() => third.page(id), { timeout: 120_000, interval: 500 }).toBe('one\n');
    await third.end();
  },
);

/** Runs a command and kills it as soon as something is there. */
async function killWhen(isThere: () => boolean, args: string[], settings: Record<string, string>): Promise<void> {
  const command = launchProgram(args, settings);
  await expect.poll(isThere, { timeout: 60_000, interval: 2 }).toBe(true);
  command.kill('SIGKILL');
  await command.ended;
}

test(
  'a pack and an unpack that are killed at any step lose nothing: the service does not start, and the command is repeated',
  { timeout: 300_000 },
  async () => {
    const old = installation('killed-old');
    const [dataDir, file] = [dataDirOf(old), path.join(home, 'killed.move')];
    const passphrase = path.join(home, 'passphrase');
    writeFileSync(passphrase, 'correct horse battery staple\n');
    const secret = ['--passphrase-file', passphrase];
    const service = await startService(old);
    const organization = (await service.ask('GET', '/organization')).results[0].id;
    await service.ask('POST', `/organization/${organization}/project`, { name: 'kept' });
    await service.end();
    const record = (folder: string) => path.join(folder, 'move', 'record.json');

    expect(await runProgram(['move', 'pack', path.join(dataDir, 'x.move')], old)).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('lies in the data directory'),
    });
    for (const moment of [record(dataDir), path.join(dataDir, 'move', 'database')]) {
      await killWhen(() => existsSync(moment), ['move', 'pack', file, ...secret], old);
      expect(existsSync(file)).toBe(false);
      expect(await runProgram(['start'], old)).toMatchObject({
        status: 1,
        stderr: expect.stringMatching(/move pack` began at .* and has not ended. Run it again, or give it up/),
      });
      rmSync(path.join(dataDir, 'move', 'database'), { force: true });
    }
    const packed = await runProgram(['move', 'pack', file, ...secret], old);
    expect(packed, packed.stderr).toMatchObject({ status: 0, stdout: expect.stringContaining('It is encrypted') });
    expect(readdirSync(home).filter((name) => name.endsWith('.part'))).toEqual([]);

    const fresh = installation('killed-new');
    const to = dataDirOf(fresh);
    expect(await runProgram(['move', 'unpack', file], fresh)).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('is encrypted'),
    });
    expect(existsSync(record(to))).toBe(false);
    const restoring = path.join(to, 'postgres', 'data', 'postmaster.pid');
    for (const moment of [record(to), path.join(to, 'vault.key'), restoring]) {
      await killWhen(() => existsSync(moment), ['move', 'unpack', file, ...secret], fresh);
      for (const command of ['start', 'migrate'])
        expect(await runProgram([command], fresh)).toMatchObject({
          status: 1,
          stderr: expect.stringMatching(/move unpack .*` began at .* and has not ended: run it again/),
        });
    }
    expect(await runProgram(['move', 'undo'], fresh)).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('It is the new installation'),
    });
    const unpacked = await runProgram(['move', 'unpack', file, ...secret, '--read-only'], fresh);
    expect(unpacked, unpacked.stderr).toMatchObject({ status: 0, stdout: expect.stringContaining('It is read-only') });
    expect(await runProgram(['restore', '--accept'], fresh)).toMatchObject({ status: 0 });
    const moved = await startService(fresh);
    const projects = (await moved.ask('GET', `/organization/${organization}/project`)).results;
    expect(projects.map(({ name }: { name: string }) => name)).toEqual(['kept']);
    await moved.end();

    const removed = await runProgram(['uninstall', '--yes'], { ...old, HOME: home });
    expect(removed, removed.stderr).toMatchObject({ status: 0 });
    expect(existsSync(dataDir)).toBe(false);
  },
);

test('an archive of a newer release is refused before anything is changed', { timeout: 120_000 }, async () => {
  const settings = installation('newer');
  const file = path.join(home, 'newer.move');
  const migrations = [{ version: 9999, name: '9999_later.sql', checksum: 'x' }];
  const facts = { takenAt: '2026-11-28T00:00:00.000Z', release: '99.0.0', migrations, installation: { id: 'i' } };
  writeFileSync(path.join(home, 'a-backup'), 'x');
  await packInstallation(file, {
    id: 'archive',
    settings: { dataDir: path.join(home, 'nothing'), vaultKeyFile: '' },
    backup: { file: path.join(home, 'a-backup'), manifest: facts as unknown as Manifest, diskBytes: 1 },
    volumes: [],
    passphrase: undefined,
    progress: () => undefined,
    whole: async () => undefined,
  });
  expect(await runProgram(['move', 'unpack', file], settings)).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/made by a newer release \(99\.0\.0, which has the migration 9999_later\.sql\)/),
  });
  expect(existsSync(path.join(dataDirOf(settings), 'move', 'record.json'))).toBe(false);
});
