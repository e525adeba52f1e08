import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { causesPage } from '../../../scripts/causes-page.ts';

test('docs/causes.md is what the known causes say; `npm run gen` writes it', () => {
  const page = readFileSync(path.join(import.meta.dirname, '../../../docs/causes.md'), 'utf8');
  expect(page).toBe(causesPage());
});
