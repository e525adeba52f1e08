import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { statesPage } from '../../scripts/states-page.ts';

describe('docs/states.md', () => {
  test('is what the table of transitions says; `npm run gen` writes it', () => {
    expect(readFileSync(path.join(import.meta.dirname, '../../docs/states.md'), 'utf8')).toBe(statesPage());
  });
});
