import { describe, expect, test } from 'vitest';
import { findStuck, type QueueItem } from '#deployments/queue/stuck.ts';
import { makeRandom } from '#test/harness/random.ts';

const item = (id: string, waitsFor: string[] = [], more: Partial<QueueItem> = {}): QueueItem => ({
  id,
  label: id,
  clusterId: 'c',
  clusterName: 'c',
  absentNode: null,
  held: false,
  waitsFor,
  ...more,
});

const idsOf = (items: QueueItem[]) => items.map(({ id }) => id);

describe('the watchdog of the queue', () => {
  test('finds a circle, and not those who only wait behind it', () => {
    const { cycles, free } = findStuck([item('behind', ['a']), item('a', ['b']), item('b', ['c']), item('c', ['a'])]);
    expect(cycles.map((cycle) => idsOf(cycle).sort())).toEqual([['a', 'b', 'c']]);
    expect(free).toEqual([]);
  });

  test('finds a circle in each cluster', () => {
    const other = { clusterId: 'd' };
    const { cycles } = findStuck([
      item('a', ['b']),
      item('b', ['a']),
      item('x', ['y'], other),
      item('y', ['x'], other),
    ]);
    expect(cycles).toHaveLength(2);
  });

  test('finds a head that nothing holds, and none that is held or waits', () => {
    const { cycles, free } = findStuck([item('free'), item('next', ['free']), item('held', [], { held: true })]);
    expect(cycles).toEqual([]);
    expect(idsOf(free)).toEqual(['free']);
  });

  test('takes what is gone meanwhile for nothing to wait for', () => {
    expect(idsOf(findStuck([item('a', ['gone'])]).free)).toEqual(['a']);
  });

  test('finds no circle in any queue where everybody waits for earlier ones alone', () => {
    for (let seed = 0; seed < 200; seed++) {
      const random = makeRandom(seed);
      const items = Array.from({ length: 1 + random.below(30) }, (_, at) =>
        item(
          String(at),
          Array.from({ length: at }, (__, earlier) => String(earlier)).filter(() => random.below(3) === 0),
        ),
      );
      const { cycles, free } = findStuck(items);
      expect(cycles, `seed ${seed}`).toEqual([]);
      expect(free.length, `seed ${seed}`).toBeGreaterThan(0);
      const [first, last] = [items[0]!, items.at(-1)!];
      if (items.length > 1 && last.waitsFor.includes('0')) {
        first.waitsFor.push(last.id);
        expect(findStuck(items).cycles, `seed ${seed}`).toHaveLength(1);
      }
    }
  });
});
