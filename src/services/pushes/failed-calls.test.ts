import { expect, test } from 'vitest';
import { FailedCalls } from '#services/pushes/failed-calls.ts';

/** Returns how many calls from an address are let in. */
const countLetIn = (failed: FailedCalls, address: string, webhook: string, calls = 1_000): number =>
  Array.from({ length: calls }, () => failed.begin(address, webhook)).filter(Boolean).length;

test('calls that never knew the secret are refused after 60, whether or not their bodies were read', () => {
  const failed = new FailedCalls();
  expect(countLetIn(failed, 'a', 'hook')).toBe(60);
  expect(countLetIn(failed, 'b', 'hook')).toBe(60);
  expect(countLetIn(failed, 'a', 'other')).toBe(60);
});

test('a webhook in use has a limit as well, and each right call begins it anew', () => {
  const failed = new FailedCalls();
  failed.begin('provider', 'hook');
  failed.accept('provider', 'hook');
  expect(countLetIn(failed, 'stranger', 'hook')).toBe(600);
  for (let n = 0; n < 3; n++) {
    expect(countLetIn(failed, 'provider', 'hook', 500)).toBe(500);
    failed.accept('provider', 'hook');
  }
});
