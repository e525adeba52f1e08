import { expect, test } from 'vitest';
import { connectionAdvice, connectionsFor, openFilesLimit } from '#runtimes/proxy/descriptors.ts';

test('a process knows how many files it may open', () => {
  expect(openFilesLimit()).toBeGreaterThan(100);
});

test('each connection of a visitor leaves a file for one to an upstream', () => {
  expect(connectionsFor(20_000, 20_000)).toBe(9_968);
  expect(connectionsFor(1_048_576, 20_000)).toBe(20_000);
  expect(connectionsFor(Infinity, 20_000)).toBe(20_000);
  expect(connectionsFor(50, 20_000)).toBe(1);
});

test('a limit of open files that allows fewer connections is told with the value that allows all', () => {
  expect(connectionAdvice(20_000, 20_000)).toContain(
    'at most 9968 connections at once instead of 20000, because a process may open 20000 files here: raise the limit to 40064',
  );
  expect(connectionAdvice(40_064, 20_000)).toBeNull();
});
