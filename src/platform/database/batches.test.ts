import { expect, test } from 'vitest';
import { inBatches } from '#platform/database/batches.ts';

test('work on many rows goes on until less than a batch is left, and tells how many there were', async () => {
  const left = [3, 3, 1, 3];
  expect(await inBatches(3, undefined, async () => left.shift()!)).toBe(7);
  expect(left).toEqual([3]);
});

test('work on many rows ends between two batches once its signal is aborted', async () => {
  const stop = new AbortController();
  let batches = 0;
  const work = inBatches(3, stop.signal, async () => {
    if (++batches === 2) stop.abort(new Error('the process ends'));
    return 3;
  });
  await expect(work).rejects.toThrow('the process ends');
  expect(batches).toBe(2);
});
