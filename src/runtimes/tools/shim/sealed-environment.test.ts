import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { becoming, spawnSealed } from '#runtimes/tools/shim/sealed-environment.ts';

let folder: string;
beforeEach(() => (folder = mkdtempSync(path.join(tmpdir(), 'sealed-'))));
afterEach(() => rmSync(folder, { recursive: true }));

/**
 * Substitute for a program that enters a view with more rights than its workload: records its own variables, then becomes its arguments.
 */
const ENTER = 'env > "$0"; exec "$@"';

/** Runs a command with the variables of a workload, behind a program that enters its view. */
async function run(command: string[], env: Record<string, string>) {
  const seen = path.join(folder, 'seen');
  const child = spawnSealed('/bin/sh', ['-c', ENTER, seen, ...becoming(process.execPath), ...command], env, {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const [stdout, stderr, status] = await Promise.all([text(child.stdout!), text(child.stderr!), ended]);
  return { stdout, stderr, status, entered: readFileSync(seen, 'utf8') };
}

const SHOW = [process.execPath, '-e', 'console.log(JSON.stringify(process.env))'];

test('what enters a view gets none of the variables of its workload, and the command gets exactly them', async () => {
  const env = { LD_PRELOAD: '/nowhere.so', NODE_OPTIONS: '--no-deprecation', GREETING: 'hello', PATH: '/usr/bin:/bin' };
  const { stdout, entered } = await run(SHOW, env);
  expect(entered).not.toMatch(/LD_PRELOAD|NODE_OPTIONS|GREETING/);
  expect(JSON.parse(stdout)).toEqual(env);
});

test('many and long variables arrive whole', async () => {
  const env = Object.fromEntries(Array.from({ length: 10 }, (_, at) => [`VALUE_${at}`, `${at}`.repeat(60_000)]));
  expect(JSON.parse((await run(SHOW, env)).stdout)).toEqual(env);
});

test('a command that is not there ends with 127 and its name', async () => {
  const { status, stderr } = await run(['no-such-program'], { PATH: '/usr/bin' });
  expect(status).toBe(127);
  expect(stderr).toContain('no-such-program: there is no such program');
});

test.skipIf(process.platform !== 'linux')(
  'a command ignores no signals, though the program in whose place it comes does',
  async () => {
    const { stdout } = await run(['cat', '/proc/self/status'], { PATH: '/usr/bin:/bin' });
    expect(/^SigIgn:\s*(\w+)$/m.exec(stdout)?.[1]).toBe('0000000000000000');
  },
);
