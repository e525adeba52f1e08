import { expect, test } from 'vitest';
import { runCommand } from '#runtimes/tools/command.ts';

const END_ITSELF = ['-e', `process.kill(process.pid, 'SIGTERM'); setInterval(() => 0, 1000)`];

test('a program that the same signal ends as the service was cancelled, and has not failed', async () => {
  const abort = new AbortController();
  const running = runCommand(process.execPath, [...END_ITSELF], { signal: abort.signal });
  // The service receives the signal after its child has ended.
  setTimeout(() => abort.abort('give-back'), 500);
  await expect(running).rejects.toMatchObject({ code: 'aborted' });
});

test('a program that a signal of somebody else ends tells its end', async () => {
  const { signal } = new AbortController();
  expect(await runCommand(process.execPath, [...END_ITSELF], { signal })).toMatchObject({ exitCode: 128 });
});
