import { expect, test } from 'vitest';
import { isVersion, newestFirst } from '#resources/helm-repository/versions.ts';

test('versions are ordered as semver orders them, the newest first, and what is none last', () => {
  const ordered = ['2.0.0', '1.10.0', 'v1.9.0', '1.0.0', '1.0.0-rc.1', '1.0.0-beta.11', '1.0.0-beta.2', '1.0.0-beta', '1.0.0-alpha.beta', '1.0.0-alpha.1', '1.0.0-alpha', 'latest']; // prettier-ignore
  expect(newestFirst([...ordered].reverse())).toEqual(ordered);
});

test.each([
  ['1.2.3', true],
  ['v1.2.3+build.5', true],
  ['1.2', false],
  ['latest', false],
  ['sha256-0123.sig', false],
])('%s is a version: %s', (text, is) => expect(isVersion(text)).toBe(is));
