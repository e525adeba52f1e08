import { execFile } from 'node:child_process';
import path from 'node:path';
import { expect, test } from 'vitest';

test('a process whose command has ended ends with its status, whatever is left running in it', async () => {
  const fixture = path.join(import.meta.dirname, 'end-process.fixture.ts');
  const ended = await new Promise((resolve) => {
    const child = execFile(process.execPath, [fixture], (_error, stdout) => resolve([child.exitCode, stdout]));
  });
  expect(ended).toEqual([3, 'The command has ended.\n']);
});
