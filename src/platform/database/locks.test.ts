import { readFileSync, globSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { CLAIMING_CLASS, LIVENESS_CLASS, LOCKS, PLACES_CLASS } from '#platform/database/locks.ts';

const ROOT = path.join(import.meta.dirname, '../../..');
const SOURCES = globSync('{src,migrations}/**/*.{ts,sql}', { cwd: ROOT }).filter(
  (file) => !/\.(test|fixture)\.ts$/.test(file),
);

test('no two things share the key of an advisory lock', () => {
  const keys: number[] = [...Object.values(LOCKS), LIVENESS_CLASS, CLAIMING_CLASS, PLACES_CLASS];
  expect(new Set(keys).size).toBe(keys.length);
});

test('advisory locks are taken by the registry of their keys alone', () => {
  expect(SOURCES.length).toBeGreaterThan(500);
  const takers = SOURCES.filter((file) => /pg_(try_)?advisory/.test(readFileSync(path.join(ROOT, file), 'utf8')));
  expect(takers).toEqual(['src/platform/database/locks.ts']);
});
