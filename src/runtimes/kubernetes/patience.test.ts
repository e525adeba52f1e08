import { expect, test } from 'vitest';
import { ApiError, TooLargeError } from './errors.ts';
import { insist, Patience } from './patience.ts';

test('an answer that is too large to be read is told at once, and not waited for as an outage is', async () => {
  const told: string[] = [];
  const patience = new Patience((line) => told.push(line));
  expect(await patience.ask(() => Promise.reject(new ApiError(503, '', 'away')))).toBeUndefined();
  expect(told).toEqual(['The cluster refused: away']);
  let calls = 0;
  const ask = () => {
    calls++;
    return Promise.reject(new TooLargeError('GET /api/v1/pods', 3 * 2 ** 20));
  };
  const failure = { code: 'failed', message: expect.stringContaining('GET /api/v1/pods has more than 3 MiB') };
  await expect(patience.ask(ask)).rejects.toMatchObject(failure);
  await expect(insist(60_000, ask)).rejects.toMatchObject(failure);
  expect([calls, told.length]).toEqual([2, 1]);
});
