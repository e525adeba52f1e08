import { maskOf } from '#kernel/secrets-mask.ts';
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import {
  askShim,
  followShimLog,
  readShim,
  readShimLog,
  restartShim,
  startShim,
  stopShim,
} from '#runtimes/tools/shim/index.ts';
import { identify, isRunning, parseStat, readBootId } from '#runtimes/tools/shim/identity.ts';
import { LineCutter } from '#runtimes/tools/shim/log.ts';

let root: string;
let directories: string[];

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'shim-'));
  directories = [];
});

afterEach(async () => {
  for (const directory of directories) await stopShim(directory, 0);
  rmSync(root, { recursive: true });
});

/** Starts `node -e code` under a shim. */
function start(code: string, options: object = {}) {
  const directory = join(
    root,
    'a-folder-with-a-name-that-makes-the-path-of-the-socket-longer-than-it-may-be'.repeat(2),
  );
  directories.push(directory);
  return startShim({ directory, command: process.execPath, args: ['-e', code], env: {}, ...options }).then((view) => ({
    directory,
    view,
  }));
}

const texts = async (directory: string) => (await readShimLog(directory, 100)).map((line) => line.text);
const until = (check: () => unknown) => vi.waitFor(check, { timeout: 8000, interval: 20 });

test('keeps a process running with its output as lines of JSON, and ends both on request', async () => {
  const { directory, view } = await start('console.log("hello");console.error("oh");setInterval(()=>0,1e3)');
  expect(view).toMatchObject({ alive: true, running: true, state: { state: 'running', restarts: 0, lastExit: null } });
  await until(async () => expect((await texts(directory)).toSorted()).toEqual(['hello', 'oh']));
  expect((await readShimLog(directory, 100)).map((line) => line.stream).toSorted()).toEqual(['stderr', 'stdout']);
  expect((await askShim(directory)).process).toEqual(view.state.process);
  await stopShim(directory, 5000);
  expect(readShim(directory)).toMatchObject({
    alive: false,
    running: false,
    state: { state: 'stopped', process: null },
  });
  expect(isRunning(view.state.process!, readBootId())).toBe(false);
});

test('starts the process anew with back-off and writes down how it ended', async () => {
  const { directory } = await start('console.log("once");process.exit(3)', {
    backoff: { firstMs: 20, maxMs: 40, resetAfterMs: 60_000 },
  });
  await until(() => expect(readShim(directory)!.state.restarts).toBeGreaterThanOrEqual(3));
  expect(readShim(directory)!.state.lastExit).toMatchObject({ code: 3, signal: null, reason: 'ended with status 3' });
  expect((await texts(directory)).length).toBeGreaterThanOrEqual(3);
});

test('says why a program cannot be started', async () => {
  const directory = join(root, 's');
  directories.push(directory);
  await startShim({ directory, command: '/no/such/program', args: [], env: {} });
  await until(() => expect(readShim(directory)!.state.lastExit?.reason).toMatch(/cannot be started.*ENOENT/));
});

test('ends a process that ignores SIGTERM after the grace period, with the children it started', async () => {
  const { directory } = await start(
    `process.on('SIGTERM',()=>console.log('ignored'));
     const c=require('node:child_process').spawn('sleep',['1000']);console.log('child '+c.pid);setInterval(()=>0,1e3)`,
  );
  await until(async () => expect((await texts(directory))[0]).toMatch(/^child/));
  const child = identify(Number((await texts(directory))[0]!.split(' ')[1]), readBootId())!;
  await stopShim(directory, 200);
  expect(await texts(directory)).toContain('ignored');
  expect(readShim(directory)!.state.lastExit).toMatchObject({ signal: 'SIGKILL', reason: 'stopped' });
  await until(() => expect(isRunning(child, readBootId())).toBe(false));
});

test('ends at once what is still making its namespaces: nothing of the program has begun that could take its time', async () => {
  const wrapper = `process.on('SIGTERM', () => undefined); console.log('up'); setInterval(() => 0, 1000)`;
  const { directory } = await start(wrapper, { signalDepth: 2 });
  await until(async () => expect(await texts(directory)).toEqual(['up']));
  // Longer than this test may take.
  await stopShim(directory, 600_000);
  expect(readShim(directory)).toMatchObject({ alive: false, running: false, state: { state: 'stopped' } });
});

test('two shims are never in one folder, even where the second is started before the first has shown', async () => {
  const code = `console.log(process.ppid); setInterval(() => 0, 1000)`;
  const views = await Promise.all([start(code), start(code), start(code)]);
  const { directory } = views[0]!;
  expect(new Set(views.map(({ view }) => view.state.shim.pid)).size).toBe(1);
  await until(async () => expect(await texts(directory)).toEqual([String(readShim(directory)!.state.shim.pid)]));
});

test.skipIf(process.platform !== 'linux')(
  'who takes the names that follow from a folder keeps no shim out of it',
  async () => {
    const directory = join(root, 'known');
    directories.push(directory);
    mkdirSync(directory, { mode: 0o700 });
    const { dev, ino } = statSync(directory);
    const stranger = createServer();
    await new Promise<void>((resolve) => stranger.listen(`\0quarterdeck-shim-${dev}-${ino}`, resolve));
    const first = await startShim({ directory, command: 'sleep', args: ['1000'], env: {} }).finally(() =>
      stranger.close(),
    );
    expect(first.running).toBe(true);
    expect(statSync(join(directory, 'holder')).mode & 0o777).toBe(0o600);
  },
);

test('restart gives a new process under the same shim at once', async () => {
  const { directory, view } = await start('setInterval(()=>0,1e3)');
  await restartShim(directory, 5000);
  const after = readShim(directory)!;
  expect(after.state.shim).toEqual(view.state.shim);
  expect(after.running).toBe(true);
  expect(after.state.process!.pid).not.toBe(view.state.process!.pid);
});

test('the process survives kill -9 of the one that started it, and is taken over again', async () => {
  const directory = join(root, 'survivor');
  directories.push(directory);
  const script = join(import.meta.dirname, 'starter.fixture.ts');
  const starter = spawn(process.execPath, ['--no-warnings', script, directory], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await new Promise((resolve) => starter.stdout.once('data', resolve));
  starter.kill('SIGKILL');
  await new Promise((resolve) => starter.once('exit', resolve));
  const found = readShim(directory)!;
  expect(found).toMatchObject({ alive: true, running: true });
  const again = await startShim({ directory, command: 'sleep', args: ['1000'], env: {} });
  expect(again.state).toEqual(found.state);
});

test('a shim that was killed leaves nothing: its process is ended by identity and a new one starts', async () => {
  const { directory, view } = await start('setInterval(()=>0,1e3)');
  process.kill(view.state.shim.pid, 'SIGKILL');
  await until(() => expect(readShim(directory)!.alive).toBe(false));
  const { view: next } = await start('setInterval(()=>0,1e3)');
  expect(next.alive).toBe(true);
  expect(isRunning(view.state.process!, readBootId())).toBe(false);
});

test('a shim that dies while it is asked to stop leaves no process', async () => {
  const { directory, view } = await start('setInterval(()=>0,1e3)');
  process.kill(view.state.shim.pid, 'SIGSTOP');
  const stopping = stopShim(directory, 0);
  process.kill(view.state.shim.pid, 'SIGKILL');
  await stopping;
  expect(isRunning(view.state.shim, readBootId())).toBe(false);
  expect(isRunning(view.state.process!, readBootId())).toBe(false);
});

test('after a restart of the machine nothing counts as running and no pid is touched', async () => {
  const { directory, view } = await start('setInterval(()=>0,1e3)');
  expect(readShim(directory, 'another-boot')).toMatchObject({ alive: false, running: false });
  await stopShim(directory, 0, 'another-boot');
  expect(isRunning(view.state.process!, readBootId())).toBe(true);
  const other = { ...view.state.process!, startTime: '1' };
  expect(isRunning(other, readBootId())).toBe(false);
});

/** Returns a liveness check by a command that must succeed twice in a row. The arguments of `wrap` enter the workload. */
const livenessOf = (command: string[], wrap: string[] = []) => ({
  probe: {
    check: { type: 'exec', command },
    initialDelaySeconds: 0,
    periodSeconds: 0.05,
    timeoutSeconds: 2,
    successThreshold: 1,
    failureThreshold: 2,
  },
  target: { address: '127.0.0.1', ports: {}, wrap, env: { PATH: '/usr/bin:/bin' }, cwd: '/' },
});

test('a process whose liveness check fails is started anew with the reason', async () => {
  const flag = join(root, 'well');
  writeFileSync(flag, '');
  const { directory } = await start('setInterval(()=>0,1e3)', {
    backoff: { firstMs: 10, maxMs: 10, resetAfterMs: 1e6 },
    liveness: livenessOf(['test', '-e', flag]),
  });
  expect(readShim(directory)!.state.restarts).toBe(0);
  rmSync(flag);
  await until(() => expect(readShim(directory)!.state.restarts).toBeGreaterThan(0));
  expect(readShim(directory)!.state.lastExit!.reason).toBe('not alive: test ended with status 1');
});

test('a process is not checked before its namespaces are made, however long that takes', async () => {
  // A process in the test's own root has not yet entered its namespaces.
  const { directory } = await start('setInterval(()=>console.log("still here"),50)', {
    liveness: livenessOf(['false'], ['env']),
  });
  await until(async () => expect((await texts(directory)).length).toBeGreaterThan(20));
  expect(readShim(directory)!.state).toMatchObject({ state: 'running', restarts: 0, lastExit: null });
});

test('the log rotates by size, is read across its files and followed across a rotation', async () => {
  const allowed = join(root, 'allowed');
  // Writes less than the files take before it is read: of what rotations remove, the lines are lost.
  const allow = (lines: number) => writeFileSync(allowed, String(lines));
  allow(40);
  const { directory } = await start(
    `let n=0;setInterval(()=>{const most=Number(require('node:fs').readFileSync(${JSON.stringify(allowed)},'utf8'));while(n<most)console.log('line '+(n++))},2)`,
    { log: { maxBytes: 2000, files: 3 } },
  );
  const abort = new AbortController();
  const followed: number[] = [];
  for await (const line of followShimLog(directory, abort.signal)) {
    followed.push(Number(line.text.split(' ')[1]));
    allow(followed.length + 40);
    if (followed.length === 120) break;
  }
  abort.abort();
  expect(followed).toEqual(Array.from({ length: 120 }, (_, n) => followed[0]! + n));
  await until(() => expect(statSync(join(directory, 'log')).size).toBeLessThanOrEqual(2000));
  const tail = (await readShimLog(directory, 40)).map((line) => Number(line.text.split(' ')[1]));
  expect(tail).toEqual(Array.from({ length: 40 }, (_, n) => tail[0]! + n));
});

test('secrets get neither into the log nor onto the command line nor into a file', async () => {
  const secret = 'hunter2-hunter2';
  const { directory, view } = await start('console.log("it is "+process.env.PASSWORD);setInterval(()=>0,1e3)', {
    env: { PASSWORD: secret },
    secrets: [secret],
  });
  await until(async () => expect(await texts(directory)).toEqual(['it is ***']));
  for (const name of ['log', 'state.json', 'shim-errors'])
    expect(readFileSync(join(directory, name), 'utf8')).not.toContain(secret);
  expect(readFileSync(`/proc/${view.state.shim.pid}/cmdline`, 'utf8')).not.toContain(secret);
});

test('values of less than 4 characters are not masked, and each line of a longer value is', () => {
  expect(maskOf(['abc', 'first line\nsecond'])('abc first line then second')).toBe('abc *** then ***');
});

test('lines are cut at newlines whatever the pieces, and very long ones in parts', () => {
  const lines: string[] = [];
  const cutter = new LineCutter((line) => lines.push(line));
  for (const byte of Buffer.from('grün\r\nzwei\n\nrest')) cutter.push(Buffer.from([byte]));
  cutter.end();
  expect(lines).toEqual(['grün', 'zwei', '', 'rest']);
  lines.length = 0;
  cutter.push(Buffer.from('x'.repeat(100_000)));
  cutter.end();
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(16_384);
  expect(lines.join('')).toBe('x'.repeat(100_000));
});

test('a program name with parentheses and blanks does not confuse the fields of stat', () => {
  const text = `7 (a) R 1 b) S 42 7 7 0 -1 4 1 0 0 0 11 22 0 0 20 0 1 0 9876 1000 55 1`;
  expect(parseStat(text)).toMatchObject({ state: 'S', parent: 42, ticks: 33, startTime: '9876', residentPages: 55 });
});
