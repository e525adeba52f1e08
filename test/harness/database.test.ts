import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { once } from 'node:events';
import path from 'node:path';
import { expect, test } from 'vitest';
import { startTestServer } from '#test/harness/database.ts';

const PROGRAM = `import { startTestServer } from '#test/harness/database.ts';
const { directory } = await startTestServer();
console.log(directory);
setInterval(() => undefined, 1000);`;

test(
  'a run of tests that was killed leaves its PostgreSQL to the next run, which ends it',
  { timeout: 60_000 },
  async () => {
    const child = spawn(process.execPath, ['--input-type=module-typescript', '--eval', PROGRAM], {
      cwd: path.join(import.meta.dirname, '../..'),
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = (await once(child.stdout, 'data')) as [Buffer];
    const abandoned = line.toString().trim();
    expect(existsSync(path.join(abandoned, 'data', 'postmaster.pid'))).toBe(true);
    child.kill('SIGKILL');
    await once(child, 'exit');
    const next = await startTestServer();
    expect(existsSync(abandoned)).toBe(false);
    await next.stop();
  },
);
