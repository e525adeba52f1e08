import { describe, expect, test } from 'vitest';
import { Slots } from '#deployments/executor/slots.ts';

const { signal } = new AbortController();

/** Takes places as `work` names their tenants, in this order; gives each back as soon as all have asked. Answers the order in which they came. */
async function orderOf(most: number, work: string[]): Promise<string[]> {
  const slots = new Slots(most);
  const order: string[] = [];
  const all = work.map(async (name) => {
    const leave = await slots.take(name[0]!, signal);
    order.push(name);
    await Promise.resolve();
    await new Promise(setImmediate);
    leave();
  });
  await Promise.all(all);
  return order;
}

describe('places for builds and checkouts', () => {
  test('go to an organization that has none before the next ones of an organization that has some', async () => {
    expect(await orderOf(2, ['a1', 'a2', 'a3', 'a4', 'b1', 'c1', 'b2'])).toEqual([
      'a1',
      'a2',
      'b1',
      'c1',
      'a3',
      'b2',
      'a4',
    ]);
    expect(await orderOf(1, ['a1', 'a2', 'a3', 'b1', 'b2', 'c1'])).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3']);
  });

  test('go in the order of arrival within an organization', async () => {
    expect(await orderOf(1, ['a1', 'a2', 'a3'])).toEqual(['a1', 'a2', 'a3']);
  });

  test('are never more than there are, and each is given back once', async () => {
    const slots = new Slots(2);
    const first = await slots.take('a', signal);
    await slots.take('a', signal);
    expect(slots.takeFree('d')).toBeUndefined();
    const got: string[] = [];
    const waiting = ['b', 'c'].map((name) => slots.take(name, signal).then(() => got.push(name)));
    first();
    first();
    await waiting[0];
    await new Promise(setImmediate);
    expect(got).toEqual(['b']);
    expect(slots.takeFree('d')).toBeUndefined();
  });

  test('are left to others by a tenant that has its part, and its next work goes on when its own has ended', async () => {
    const slots = new Slots(4, 2);
    const own = [await slots.take('a', signal), await slots.take('a', signal)];
    expect(slots.takeFree('a')).toBeUndefined();
    const got: string[] = [];
    const waiting = [1, 2].map((at) => slots.take('a', signal).then(() => got.push(`a${at}`)));
    const other = slots.takeFree('b')!;
    other();
    await new Promise(setImmediate);
    expect(got).toEqual([]);
    own[0]!();
    await waiting[0];
    await new Promise(setImmediate);
    expect(got).toEqual(['a1']);
    own[1]!();
    await waiting[1];
    expect(got).toEqual(['a1', 'a2']);
  });

  test('are not kept for a caller that left', async () => {
    const slots = new Slots(1);
    const leave = await slots.take('a', signal);
    const gone = new AbortController();
    const left = slots.take('b', gone.signal);
    const next = slots.take('a', signal);
    gone.abort(new Error('cancelled'));
    await expect(left).rejects.toThrow('cancelled');
    leave();
    (await next)();
    expect(slots.takeFree('d')).toBeDefined();
    await expect(slots.take('b', gone.signal)).rejects.toThrow('cancelled');
  });
});
