import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { losesWaiting } from '#runtimes/proxy/caddy/waiting.ts';

test.skipIf(process.platform !== 'linux')('waiting connections are kept only where Linux is told to move them', () => {
  const folder = mkdtempSync(join(tmpdir(), 'waiting-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const setting = (text: string) => {
    writeFileSync(join(folder, 'setting'), text);
    return join(folder, 'setting');
  };
  expect(losesWaiting(setting('1\n'))).toBe(false);
  expect(losesWaiting(setting('0\n'))).toBe(true);
  expect(losesWaiting(join(folder, 'absent'))).toBe(true);
});
