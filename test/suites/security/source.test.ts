import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

const ROOT = path.join(import.meta.dirname, '../../..');
const files = globSync('src/**/*.ts', { cwd: ROOT })
  .filter((file) => !/\.(test|fixture)\.ts$/.test(file))
  .map((file) => ({ file, text: readFileSync(path.join(ROOT, file), 'utf8') }));

/** Returns the lines of the program's own files that match a pattern, as `file: line`. */
const places = (pattern: RegExp, where: (file: string) => boolean = () => true): string[] =>
  files
    .filter(({ file }) => where(file))
    .flatMap(({ file, text }) =>
      text
        .split('\n')
        .filter((line) => pattern.test(line))
        .map((line) => `${file}: ${line.trim()}`),
    );

test('programs are started with argument lists: no shell, and no text that is run', () => {
  expect(places(/shell: *true|\bexecSync\(|\{ *exec *[,}].*child_process/)).toEqual([]);
  expect(places(/\beval\(|new Function\(/)).toEqual([]);
  // The garbage collector is only reachable through a context of its own.
  expect(
    places(/node:vm|runIn\w*Context\((?!'gc'\))/).filter((place) => !place.startsWith('src/kernel/idle.ts')),
  ).toEqual([]);
  expect(places(/runIn\w*Context\((?!'gc'\))/)).toEqual([]);
});

test('what is compared with a secret is compared in constant time: hashes are in no condition of a statement or program', () => {
  const hashes = /(secret_hash|secretHash|\.fingerprint)\b/;
  expect(places(new RegExp(`${hashes.source}[^;]*(===|!==|\\.equals\\()|(===|!==)[^;]*${hashes.source}`))).toEqual([]);
  expect(places(new RegExp(`where\\([^)]*${hashes.source}`))).toEqual([]);
  const compared = new Set(places(/timingSafeEqual\(/).map((place) => place.split(':')[0]));
  for (const file of ['access/secret-text.ts', 'http/idempotency.ts'])
    expect(compared).toContain(`src/platform/${file}`);
  expect(compared).toContain('src/services/capabilities/environment/history/build-report.ts');
});

test('whatever a command prints goes through the one function that makes it harmless', () => {
  expect(places(/console\.|process\.stdout\.write/, (file) => file.startsWith('src/cli/')).sort()).toEqual([
    'src/cli/print.ts: export const print = (text: string): void => console.log(printable(text));',
    'src/cli/print.ts: export const printAside = (text: string): void => console.error(printable(text));',
    // Writes nothing: it waits until the output is flushed.
    "src/cli/print.ts: process.stdout.write('', () => done());",
  ]);
});

test('secrets come from the generator that is made for them', () => {
  expect(places(/Math\.random\(/, (file) => /access|vault|webhook|token|secret/i.test(file))).toEqual([]);
});
