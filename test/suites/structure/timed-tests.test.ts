import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

/** Upper bound on a time that a test has measured: a busy machine exceeds any. */
const TIMED = /(?:performance|Date)\.now\(\) - [\w.]+\)\s*\.toBeLess/;

/** Tests whose bound is a promise of the product, with that promise. */
const PROMISED: Record<string, string> = {
  'test/crash/hung.crash.test.ts': 'SIGTERM ends the process within 30 s',
  'test/crash/several-processes.crash.test.ts': 'work of a killed worker goes on before its lease ends',
};

const timed = (files: string[]): string[] => files.filter((file) => TIMED.test(readFileSync(file, 'utf8')));

test('no test fails because the machine is slow: none has an upper bound on a time, but for what is promised', () => {
  const own = path.relative(process.cwd(), import.meta.filename);
  const tests = globSync(['src/**/*.test.ts', 'test/**/*.test.ts']).filter((file) => file !== own);
  expect(tests.length).toBeGreaterThan(500);
  expect(timed(tests).toSorted()).toEqual(Object.keys(PROMISED));
});

test('such a bound is found', () => {
  expect('expect(performance.now() - began).toBeLessThan(1_000);').toMatch(TIMED);
  expect('expect(Date.now() - since)\n  .toBeLessThanOrEqual(5);').toMatch(TIMED);
});
