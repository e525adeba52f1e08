import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, expect, test } from 'vitest';

const children: ChildProcess[] = [];
afterEach(() => children.splice(0).forEach((child) => child.kill('SIGKILL')));

/** A process of its own that does something with the log, and the lines that come out of it. */
function run(work: string) {
  const program = `
    import { createLog } from '#platform/telemetry/log.ts';
    const log = await createLog({ logLevel: 'info' });
    ${work}`;
  const child = spawn(process.execPath, ['--input-type=module-typescript', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()));
  const lines = () =>
    text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as { msg: string; level: number });
  const line = async (msg: string) => {
    while (!lines().some((one) => one.msg === msg)) await once(child.stdout, 'data');
  };
  return { child, lines, line, ended: once(child, 'close') };
}

test('whatever was said before the end of the process is there, in its order', async () => {
  const { lines, ended } = run('for (let n = 0; n < 5000; n++) log.info(String(n)); process.exitCode = 3;');
  expect((await ended)[0]).toBe(3);
  expect(lines().map((line) => line.msg)).toEqual(Array.from({ length: 5000 }, (_, n) => String(n)));
});

test('so it is when the process ends itself at once', async () => {
  const { lines, ended } = run(`log.info('first'); process.exit(1);`);
  await ended;
  expect(lines().map((line) => line.msg)).toEqual(['first']);
});

test('an error is written before anything else is done, with what came before it', async () => {
  const { lines, ended } = run(`log.info('before'); log.error('it went wrong'); process.kill(process.pid, 'SIGKILL');`);
  expect((await ended)[1]).toBe('SIGKILL');
  expect(lines().map((line) => line.msg)).toEqual(['before', 'it went wrong']);
});

test('a line comes without waiting for others', async () => {
  const { child, line } = run(`log.info('alone'); setInterval(() => undefined, 60_000);`);
  await line('alone');
  expect(child.exitCode).toBeNull();
});
