import { describe, expect, test } from 'vitest';
import { pauseOf, turnOf } from '#platform/work/pace.ts';

const workers = (count: number) => Array.from({ length: count }, (_, index) => 100 + index);

describe('the pace of polls', () => {
  test('is the base for few workers, and about four looks a second for many together', () => {
    for (const random of [0, 0.5, 0.999]) {
      expect(pauseOf(1, 500, random)).toBeLessThanOrEqual(750);
      expect(pauseOf(20, 500, random)).toBe(5_000 * (0.5 + random));
      expect(pauseOf(1_000, 500, random)).toBeLessThanOrEqual(15_000);
      expect(pauseOf(1, 20_000, random), 'a base above the longest pause stays').toBe(20_000 * (0.5 + random));
    }
  });
});

describe('an item of which all workers are told', () => {
  test('is looked at by one at once and by a few others in turn, whatever the ticket', () => {
    for (const count of [1, 2, 7, 1_000])
      for (const ticket of [0, 5, 123_456_789]) {
        const turns = workers(count).map((worker) => turnOf(ticket, worker, workers(count)));
        expect(turns.filter((turn) => turn === 0)).toHaveLength(1);
        const looking = turns.filter((turn) => turn !== undefined);
        expect(looking.length).toBe(Math.min(count, 21));
        expect(new Set(looking).size).toBe(looking.length);
      }
  });

  test('is looked at at once by a worker that has joined just now', () => {
    expect(turnOf(5, 7, workers(3))).toBe(0);
    expect(turnOf(5, 7, [])).toBe(0);
  });
});
