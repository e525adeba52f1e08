import fc from 'fast-check';
import { expect, test } from 'vitest';
import { matchesWildcard } from '#resources/deployment-rule/wildcard.ts';

test.each([
  ['*', '', true],
  ['*', 'anything', true],
  ['', '', true],
  ['', 'a', false],
  ['dev-*', 'dev-api', true],
  ['dev-*', 'dev-', true],
  ['dev-*', 'my-dev-api', false],
  ['prod-?', 'prod-1', true],
  ['prod-?', 'prod-12', false],
  ['*-staging', 'a-staging-staging', true],
  ['a*b*c', 'axxbxxbc', true],
  ['DEV*', 'dev', true],
  ['dev.x', 'devax', false],
  ['?', 'ß', true],
])('%j for %j: %s', (pattern, name, expected) => expect(matchesWildcard(pattern, name)).toBe(expected));

test('says what the same pattern says as a regular expression', () => {
  const text = (alphabet: string) => fc.string({ unit: fc.constantFrom(...alphabet), maxLength: 8 });
  fc.assert(
    fc.property(text('ab*?'), text('ab'), (pattern, name) => {
      const same = new RegExp(`^${pattern.replaceAll('*', '.*').replaceAll('?', '.')}$`);
      expect(matchesWildcard(pattern, name)).toBe(same.test(name));
    }),
    { numRuns: 2000 },
  );
});

test('answers whatever the pattern, also one that a search with ways back would never end', () => {
  expect(matchesWildcard('*a'.repeat(127) + 'b', 'a'.repeat(255))).toBe(false);
});
