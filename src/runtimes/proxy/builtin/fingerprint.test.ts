import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { fingerprintOf } from '#runtimes/proxy/builtin/fingerprint.ts';

let folder: string;

const write = (name: string, text: string) => {
  mkdirSync(dirname(join(folder, name)), { recursive: true });
  writeFileSync(join(folder, name), text);
};

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'program-'));
  write('package.json', '{"imports": {"#lib/*": "./lib/*"}}');
  write(
    'proxy/main.ts',
    "import { a } from '#lib/a.ts';\nimport type { T } from '#lib/types.ts';\nvoid import('#lib/late.ts');",
  );
  write('lib/a.ts', "import {\n  Client,\n} from 'dep';\nexport const a = Client;");
  write('lib/late.ts', "import 'node:fs';");
  write('lib/types.ts', 'export type T = 1;');
  write('lib/other.ts', '');
  write('node_modules/dep/package.json', '{"version": "1.0.0"}');
});

afterEach(() => rmSync(folder, { recursive: true }));

test.each([
  ['the program itself', 'proxy/main.ts', "import '#lib/a.ts';"],
  ['a file in another folder', 'lib/a.ts', "import { Client } from 'dep';"],
  ['a file that is imported on demand', 'lib/late.ts', ''],
  ['the version of a package', 'node_modules/dep/package.json', '{"version": "1.0.1"}'],
])('the fingerprint is another one after a change of %s', (_what, name, text) => {
  const before = fingerprintOf(join(folder, 'proxy/main.ts'));
  write(name, text);
  expect(fingerprintOf(join(folder, 'proxy/main.ts'))).not.toBe(before);
});

test('the fingerprint stays after a change of types and of files that the program does not import', () => {
  const before = fingerprintOf(join(folder, 'proxy/main.ts'));
  write('lib/types.ts', 'export type T = 2;');
  write('lib/other.ts', 'export const other = 1;');
  expect(fingerprintOf(join(folder, 'proxy/main.ts'))).toBe(before);
});

test('the fingerprint of the proxy can be taken', () => {
  expect(fingerprintOf(fileURLToPath(new URL('./proxy-main.ts', import.meta.url)))).toMatch(/^[0-9a-f]{16}$/);
});
