import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const FOLDER = 'src/app';
const MOST_LINES = 1_210;
const SQL = /\bsql(<[^`]*>)?`|\.(selectFrom|insertInto|updateTable|deleteFrom)\(/;

const files = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
  .map((file) => ({ file, text: readFileSync(`${FOLDER}/${file}`, 'utf8') }));

test('the composition root sends no SQL', () => {
  expect(files.length).toBeGreaterThan(10);
  expect(files.filter(({ text }) => SQL.test(text)).map(({ file }) => file)).toEqual([]);
});

test(`the composition root has at most ${MOST_LINES} lines`, () => {
  const lines = files.reduce((sum, { text }) => sum + text.split('\n').length - 1, 0);
  expect(lines).toBeLessThanOrEqual(MOST_LINES);
});
