import { spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest';
import { newBuild, newContext, newIdentity } from '#runtimes/contract/fixture.ts';
import { ATTEMPTS, seenIn, type Seen, type Targets } from '#runtimes/host/isolation-attempts.fixture.ts';
import type { Handle, WorkloadIdentity } from '#runtimes/runtime.ts';
import { NODE_IMAGE } from '#test/harness/docker-images.ts';
import { openBench, type DockerBench } from './testing.ts';

const MARKER = 'the-secret-of-the-control-plane';

let bench: DockerBench;
let directory: string;
let process_: ChildProcess;
let targets: Targets;
const built: WorkloadIdentity[] = [];

beforeAll(async () => {
  const { socketPath } = inject('docker');
  bench = await openBench(socketPath);
  directory = mkdtempSync(join(tmpdir(), 'docker-isolation-'));
  const data = join(directory, 'data');
  mkdirSync(data);
  writeFileSync(join(data, 'vault.key'), MARKER);
  process_ = spawn('sleep', ['1000'], { cwd: data, env: { PATH: process.env.PATH, KEY: MARKER }, stdio: 'ignore' });
  targets = {
    files: [join(data, 'vault.key'), '/data/kept', '/config'],
    folders: [data, '/var/lib/docker'],
    sockets: [socketPath, '/var/run/docker.sock'],
    pid: process_.pid!,
    marker: MARKER,
  };
});
afterAll(async () => {
  process_.kill('SIGKILL');
  await bench[Symbol.asyncDispose]();
  for (const identity of built) await bench.runtime.remove(identity, null, newContext());
  rmSync(directory, { recursive: true });
});

/** Builds the break-out attempts; returns the image and the lines of the build. */
async function build(identity: WorkloadIdentity, dockerfile: string) {
  built.push(identity);
  const folder = mkdtempSync(join(directory, 'repository-'));
  writeFileSync(join(folder, 'attempts.mjs'), ATTEMPTS);
  writeFileSync(join(folder, 'targets.json'), JSON.stringify(targets));
  writeFileSync(join(folder, 'Dockerfile'), dockerfile);
  const context = newContext();
  const { image } = await bench.runtime.build!(newBuild(identity, folder), context);
  return { image, log: context.lines.join('\n') };
}

const COPIED = `FROM ${NODE_IMAGE}\nWORKDIR /app\nCOPY attempts.mjs targets.json ./\n`;

/** Waits for the findings of an instance's break-out attempts. */
const seenBy = (handle: Handle): Promise<Seen> =>
  vi.waitFor(
    async () => {
      const lines: string[] = [];
      const options = { tail: 100, follow: false, signal: new AbortController().signal };
      for await (const { text } of bench.runtime.logs(handle, options)) lines.push(text);
      return seenIn(lines.join('\n'));
    },
    { timeout: 40_000, interval: 100 },
  );

const expectShut = (seen: Seen) => {
  for (const what of ['files', 'folders', 'sockets', 'marked', 'descriptors', 'after'])
    expect(seen[what], what).toEqual([]);
  expect(seen.own).toBe(false);
  for (const what of [
    'environ',
    'memory',
    'directory',
    'kill',
    'trace',
    'write',
    'unmount',
    'remount',
    'bind',
    'kernel',
  ])
    expect(seen[what], what).toMatch(/^no: /);
  expect(process_.exitCode).toBe(null);
};

const QUIET = { ports: [], routes: [], arguments: ['node', 'attempts.mjs', 'stay'] };

test('an instance gets at neither our data nor our processes nor the engine', async () => {
  const identity = newIdentity(bench.installation);
  const { image } = await build(identity, COPIED);
  expectShut(await seenBy(await bench.apply(bench.spec({ ...QUIET, identity, image }))));
});

test('neither does a RUN of a build', async () => {
  const { log } = await build(newIdentity(bench.installation), `${COPIED}RUN node attempts.mjs\n`);
  expectShut(seenIn(log.replace(/^.*?(?=RESULT )/gm, '')));
});

test('an instance gets at neither variables, files nor storage of another service of its environment', async () => {
  const identity = newIdentity(bench.installation);
  const { image } = await build(identity, COPIED);
  const secret = {
    environment: { SECRET: MARKER },
    files: [{ path: '/config', content: MARKER }],
    storage: [{ id: identity.serviceId, mountPath: '/data', sizeGib: 1 }],
  };
  const other = await seenBy(await bench.apply(bench.spec({ ...QUIET, ...secret, identity, image })));
  expect(other).toMatchObject({ own: true, files: ['/config'] });
  const sibling = { ...newIdentity(bench.installation), environmentId: identity.environmentId };
  const second = await build(sibling, COPIED);
  expectShut(await seenBy(await bench.apply(bench.spec({ ...QUIET, identity: sibling, image: second.image }))));
});
