import { randomBytes } from 'node:crypto';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import Docker from 'dockerode';
import { pack, type Pack } from 'tar-stream';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { embeddedBinaries } from '#platform/database/embedded.ts';
import { addBusybox, addFile, addLibraries, importImage } from '#test/harness/docker-images.ts';
import { addBase, contextFiles, filesBelow, imageConfig, packageFiles } from '#test/harness/own-image.ts';
import { readCompose, type ComposeFile, type ComposeService } from '#test/suites/deploy/compose-file.ts';
import { freePort } from '#test/harness/free-port.ts';

const { socketPath } = inject('docker');
const docker = new Docker({ socketPath });
const PROJECT = `qd-compose-${process.pid}`;
const IMAGE = 'quarterdeck-of-dockerfile:1';
const BASE = 'quarterdeck-test-base:1';
const HELM = 'quarterdeck-test-helm:1';
const DATABASE = 'quarterdeck-test-database:1';

/** Program in the place of npm: no registry need be reachable. It refuses what the real one would be asked in vain. */
const NPM = `#!/usr/local/bin/node
const wanted = ['ci', '--omit=dev', '--ignore-scripts'];
if (!wanted.every((arg) => process.argv.includes(arg))) throw new Error('npm must be asked for ' + wanted.join(' '));
require('node:fs').cpSync('/opt/node_modules', 'node_modules', { recursive: true });
`;

async function addBuildBase(archive: Pack): Promise<void> {
  await addBase(archive);
  // The public image has more of the C library.
  await addLibraries(archive, path.join(embeddedBinaries()!, 'bin/postgres'));
  archive.entry({ name: 'usr/local/bin/npm', mode: 0o755 }, NPM);
  for (const file of packageFiles()) await addFile(archive, `opt/${file}`, realpathSync(file));
}

/** Starts PostgreSQL as the official image does: options after the program's name, its socket in /var/run/postgresql. */
const DATABASE_START = `#!/bin/sh
set -e
data=/var/lib/postgresql/data
if [ ! -s $data/PG_VERSION ]; then
  printf '%s' "$POSTGRES_PASSWORD" > /tmp/password
  /pg/bin/initdb -D $data -U "$POSTGRES_USER" --pwfile=/tmp/password $POSTGRES_INITDB_ARGS --locale=C
  echo "create database \\"$POSTGRES_DB\\"" | /pg/bin/postgres --single -D $data postgres
fi
exec /pg/bin/postgres -D $data -c unix_socket_directories=/var/run/postgresql "$@"
`;

/** Adds the project's own PostgreSQL in the place of the official image. */
async function addDatabase(archive: Pack): Promise<void> {
  await addBusybox(archive);
  const native = path.relative('.', embeddedBinaries()!);
  for (const file of filesBelow(native))
    await addFile(archive, `pg/${path.relative(native, file)}`, realpathSync(file));
  for (const program of ['postgres', 'initdb']) await addLibraries(archive, path.resolve(native, 'bin', program));
  archive.entry({ name: 'bin/postgres', mode: 0o755 }, DATABASE_START);
  for (const name of ['var/lib/postgresql', 'var/run/postgresql'])
    archive.entry({ name, type: 'directory', uid: 1000, gid: 1000, mode: 0o755 });
}

async function build(): Promise<void> {
  const context = pack();
  const fill = async () => {
    for (const file of [...contextFiles(), 'deploy/Dockerfile']) await addFile(context, file, realpathSync(file));
    context.finalize();
  };
  const options = { t: IMAGE, dockerfile: 'deploy/Dockerfile', buildargs: { NODE_IMAGE: BASE, HELM_IMAGE: HELM } };
  const [answer] = await Promise.all([
    docker.buildImage(Readable.from(context) as NodeJS.ReadableStream, options),
    fill(),
  ]);
  const said = await text(answer);
  expect(said, said.slice(-2000)).toContain('Successfully built');
}

/** Sources of binds that are not on the machine of the tests. */
let sources: Record<string, string>;

/** Starts a service of the compose file by the API of the engine. */
async function startService(name: string, service: ComposeService): Promise<Docker.Container> {
  const binds = service.volumes.map((volume) => {
    const [source, target] = volume.split(':') as [string, string];
    return `${sources[source] ?? `${PROJECT}-${source}`}:${target}`;
  });
  const container = await docker.createContainer({
    name: `${PROJECT}-${name}`,
    Image: service.image,
    ...(service.user ? { User: service.user } : {}),
    ...(service.command ? { Cmd: service.command } : {}),
    Env: Object.entries(service.environment).map(([key, value]) => `${key}=${value ?? ''}`),
    HostConfig: {
      Binds: binds,
      ...(service.network_mode ? { NetworkMode: service.network_mode } : {}),
      ...(service.group_add ? { GroupAdd: service.group_add.map(String) } : {}),
      ...(service.tmpfs ? { Tmpfs: Object.fromEntries(service.tmpfs.map((folder) => [folder, ''])) } : {}),
      ...(service.cap_drop ? { CapDrop: service.cap_drop } : {}),
      ...(service.security_opt ? { SecurityOpt: service.security_opt } : {}),
      ReadonlyRootfs: service.read_only ?? false,
    },
  });
  await container.start();
  return container;
}

async function exec(
  container: Docker.Container,
  command: string[],
): Promise<{ status: number | null; output: string }> {
  const run = await container.exec({ Cmd: command, AttachStdout: true, AttachStderr: true });
  const stream = await run.start({});
  const output = new PassThrough();
  container.modem.demuxStream(stream, output, output);
  stream.on('end', () => output.end());
  const said = await text(output);
  return { status: (await run.inspect()).ExitCode, output: said };
}

/** Waits until the health check of the compose file succeeds. */
const untilHealthy = (container: Docker.Container, { healthcheck: { test: command } }: ComposeService) =>
  expect
    .poll(() => exec(container, command.slice(1)).then(({ status }) => status), { timeout: 90_000, interval: 500 })
    .toBe(0);

/** A file whose setup failed has not made everything. */
function unlessAbsent(error: { statusCode?: number }): void {
  if (error.statusCode !== 404) throw error;
}

describe('the image of deploy/Dockerfile', () => {
  let folder: string;
  let file: ComposeFile;
  let quarterdeck: Docker.Container;

  beforeAll(async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'qd-compose-'));
    await importImage(docker, BASE, addBuildBase);
    await importImage(docker, HELM, async (archive) => void archive.entry({ name: 'usr/bin/helm', mode: 0o755 }, ''));
    await importImage(docker, DATABASE, addDatabase);
    await build();
  }, 240_000);
  afterAll(async () => {
    for (const { Id } of await docker.listContainers({ all: true, filters: { name: [PROJECT] } }))
      await docker.getContainer(Id).remove({ force: true });
    for (const name of ['data', 'database', 'socket', 'trial'])
      await docker.getVolume(`${PROJECT}-${name}`).remove({ force: true }).catch(unlessAbsent);
    for (const image of [IMAGE, BASE, HELM, DATABASE])
      await docker.getImage(image).remove({ force: true }).catch(unlessAbsent);
    rmSync(folder, { recursive: true, force: true });
  }, 60_000);

  test('starts the program as a user without rights, and has no tests in it', async () => {
    const { Config } = await docker.getImage(IMAGE).inspect();
    const { Entrypoint, Cmd, User, WorkingDir } = imageConfig();
    expect(Config).toMatchObject({ Entrypoint, Cmd, User, WorkingDir });
    expect(User).toBe('1000:1000');
    expect(contextFiles().filter((name) => name.endsWith('.test.ts'))).toEqual([]);
  });

  test(
    'runs as deploy/compose.yaml says, on its PostgreSQL, with the Docker Engine of the machine',
    { timeout: 240_000 },
    async () => {
      const keys = path.join(folder, 'keys');
      sources = { './keys': keys, '/var/run/docker.sock': socketPath };
      const ports = {
        QUARTERDECK_PORT: await freePort(),
        QUARTERDECK_OPERATIONS_PORT: await freePort(),
        QUARTERDECK_PROXY_PORT: await freePort(),
      };
      file = readCompose({
        POSTGRES_PASSWORD: randomBytes(12).toString('hex'),
        DOCKER_GID: String(statSync(socketPath).gid),
        QUARTERDECK_IMAGE: IMAGE,
        ...Object.fromEntries(Object.entries(ports).map(([name, port]) => [name, String(port)])),
      });
      expect(file.services.database.image).toBe('postgres:18');
      Object.assign(file.services.database, { image: DATABASE, user: '1000:1000' });
      makeKeys(keys);
      const database = await startService('database', file.services.database);
      await untilHealthy(database, {
        ...file.services.database,
        healthcheck: { test: ['CMD', 'test', '-S', '/var/run/postgresql/.s.PGSQL.5432'] },
      });
      quarterdeck = await startService('quarterdeck', file.services.quarterdeck);
      await untilHealthy(quarterdeck, file.services.quarterdeck);
      const { output } = await exec(quarterdeck, ['cat', '/data/admin-token']);
      const ask = async (where: string) => {
        const headers = { authorization: `Token ${output.trim()}` };
        return (await fetch(`http://127.0.0.1:${ports.QUARTERDECK_PORT}${where}`, { headers })).json() as any;
      };
      const [organization] = (await ask('/organization')).results;
      const clusters = async () => (await ask(`/organization/${organization.id}/cluster`)).results;
      await expect
        .poll(clusters, { timeout: 60_000 })
        .toMatchObject([{ name: 'local', runtime: 'docker', status: 'DEPLOYED' }]);

      await quarterdeck.restart({ t: 40 });
      await untilHealthy(quarterdeck, file.services.quarterdeck);
      expect((await ask('/organization')).results).toMatchObject([{ id: organization.id }]);
      const log = (await quarterdeck.logs({ stdout: true, stderr: true })).toString();
      expect(log).toContain('Quarterdeck is ready');
      expect(log).not.toContain(output.trim());
    },
  );

  test('runs with its own PostgreSQL on a volume, as a trial does', { timeout: 120_000 }, async () => {
    const { quarterdeck: service } = file.services;
    const { DATABASE_URL: _, QUARTERDECK_VAULT_KEY_FILE: __, ...environment } = service.environment;
    const trial = {
      ...service,
      volumes: ['trial:/data'],
      environment: { ...environment, QUARTERDECK_RUNTIME: 'kubernetes' },
    };
    await quarterdeck.stop({ t: 40 });
    const container = await startService('trial', trial);
    await untilHealthy(container, trial);
    await container.restart({ t: 40 });
    await untilHealthy(container, trial);
  });
});

/** Makes the folder with the key of the vault, as docs/guides/compose.md does. */
function makeKeys(keys: string): void {
  mkdirSync(keys);
  const file = path.join(keys, 'vault.key');
  writeFileSync(file, `${randomBytes(32).toString('base64')}\n`);
  for (const one of [keys, file]) chownSync(one, 1000, 1000);
  chmodSync(file, 0o400);
}
