import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { licencesPage } from '../../scripts/licences-page.ts';

const read = (name: string): string => readFileSync(path.join(import.meta.dirname, '../..', name), 'utf8');

test('docs/licences.md is what `npm run gen` makes', () => {
  expect(read('docs/licences.md')).toBe(licencesPage());
});

test('a package whose licence is not on the list, or is not known, is refused by name', () => {
  const packages = {
    '': { version: '0.1.0' },
    'node_modules/good': { version: '1.0.0', license: 'MIT' },
    'node_modules/tool': { version: '1.0.0', license: 'GPL-3.0', dev: true },
    'node_modules/good/node_modules/@acme/bad': { version: '2.0.0', license: 'GPL-3.0' },
    'node_modules/silent': { version: '3.0.0' },
  };
  expect(() => licencesPage(packages)).toThrow(/@acme\/bad 2\.0\.0: GPL-3\.0\n {2}silent 3\.0\.0: unknown$/);
});

test('the project itself is under the Apache License 2.0, whose text it carries', () => {
  expect((JSON.parse(read('package.json')) as { license: string }).license).toBe('Apache-2.0');
  const text = read('LICENSE');
  expect(text).toContain('Version 2.0, January 2004');
  expect(text).toContain('END OF TERMS AND CONDITIONS');
});
