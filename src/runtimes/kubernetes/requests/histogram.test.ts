import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LATENCY_BOUNDS_MS } from '#kernel/latency-classes.ts';
import { toClasses } from './histogram.ts';

test('the buckets of our classes are taken over as they are', () => {
  const counts = [...LATENCY_BOUNDS_MS, Infinity].map((_, n) => n + 1);
  let sum = 0;
  const histogram = [...LATENCY_BOUNDS_MS, Infinity].map((ms, n) => [ms / 1000, (sum += counts[n]!)] as const);
  expect(toClasses(histogram)).toEqual(counts);
});

test('a wide bucket is spread evenly over its classes, and what is above all buckets is in the class behind them', () => {
  const histogram = [
    [0.1, 100],
    [0.3, 100],
    [1.2, 190],
    [5, 190],
    [Infinity, 193],
  ] as const;
  expect(toClasses(histogram)).toEqual([5, 5, 15, 25, 50, 0, 20, 50, 20, 0, 3, 0, 0]);
});

test('a single request is in the middle of its bucket', () => {
  expect(
    toClasses([
      [0.1, 1],
      [Infinity, 1],
    ]),
  ).toEqual([0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
});

test('no request is lost or counted twice, whatever the buckets are', () => {
  const buckets = fc.uniqueArray(fc.double({ min: 0.0001, max: 100, noNaN: true }), { maxLength: 20 });
  fc.assert(
    fc.property(buckets, fc.array(fc.nat(1_000), { minLength: 21, maxLength: 21 }), (bounds, counts) => {
      let sum = 0;
      const all = [...bounds.toSorted((one, other) => one - other), Infinity];
      const classes = toClasses(all.map((bound, n) => [bound, (sum += counts[n]!)] as const));
      expect(classes.every((count) => Number.isSafeInteger(count) && count >= 0)).toBe(true);
      expect(classes.reduce((total, count) => total + count, 0)).toBe(sum);
    }),
  );
});

test('a histogram without requests has none, and so has one without buckets', () => {
  expect([toClasses([]), toClasses([[Infinity, 0]])].flat().every((count) => count === 0)).toBe(true);
});
