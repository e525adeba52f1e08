import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { findPrograms } from '#runtimes/tools/terraform/programs.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'qd-programs-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function put(file: string, content: string, mode = 0o755): string {
  const full = path.join(folder, file);
  mkdirSync(path.dirname(full), { recursive: true });
  writeFileSync(full, content);
  chmodSync(full, mode);
  return full;
}

const says = (version: string) => `#!/bin/sh\necho '{"terraform_version":"${version}"}'\n`;

test('programs in a folder of versions are found by what they say, and what is none is not', async () => {
  const first = put('terraform/1.9.8/terraform', says('1.9.8'));
  const other = put('tofu/1.10.0/tofu', says('1.10.0'));
  put('terraform/not-executable/terraform', says('1.0.0'), 0o644);
  put('terraform/broken/terraform', '#!/bin/sh\nexit 1\n');
  put('terraform/silent/terraform', '#!/bin/sh\necho hello\n');
  put('terraform/README', 'x', 0o644);
  const found = (await findPrograms(folder)).filter(({ path: file }) => file.startsWith(folder));
  expect(found).toEqual([
    { engine: 'TERRAFORM', version: '1.9.8', path: first },
    { engine: 'OPEN_TOFU', version: '1.10.0', path: other },
  ]);
  expect((await findPrograms('/nowhere')).every(({ path: file }) => !file.startsWith(folder))).toBe(true);
});
