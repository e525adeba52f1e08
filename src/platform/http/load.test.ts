import { expect, test } from 'vitest';
import type { Principal } from '#platform/access/principal.ts';
import { ownerOf } from '#platform/http/load.ts';

const memberOf = (...organizations: string[]): Principal => ({
  id: 'someone',
  kind: 'user',
  userId: 'someone',
  name: 'Someone',
  grants: organizations.map((organizationId) => ({ organizationId, level: 'ADMIN', roleId: null, custom: null })),
});

test('a request counts for the organization that it names, if the caller is in it', () => {
  expect(ownerOf(memberOf('a', 'b'), 'b')).toBe('b');
  expect(ownerOf(memberOf('a', 'b'), 'c')).toBeUndefined();
});

test('a request that names no organization counts for the only one of its caller', () => {
  expect(ownerOf(memberOf('a'), undefined)).toBe('a');
  expect(ownerOf(memberOf('a'), 'c')).toBe('a');
});

test('a request that names no organization counts for none of several', () => {
  expect(ownerOf(memberOf('a', 'b'), undefined)).toBeUndefined();
});
