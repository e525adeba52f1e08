import { beforeEach, describe, expect, test } from 'vitest';
import { AppError } from '#kernel/errors.ts';
import { RateLimiter } from '#platform/access/rate-limit.ts';
import { useApp } from '#test/harness/app.ts';

const app = useApp();
let tokenId: string;
beforeEach(async () => {
  await app.organization();
  const token = await app.db
    .selectFrom('api_token')
    .select('id')
    .orderBy('created_at', 'desc')
    .executeTakeFirstOrThrow();
  tokenId = token.id;
});

const NOW = new Date('2030-01-01T10:20:00Z');

/** Returns the number of simultaneous requests that are let through. */
async function allowed(limiters: RateLimiter[], requests: number, now = NOW): Promise<number> {
  const answers = await Promise.allSettled(
    Array.from({ length: requests }, async (_, n) => limiters[n % limiters.length]!.count(tokenId, now)),
  );
  for (const answer of answers)
    if (answer.status === 'rejected') expect((answer.reason as AppError).code).toBe('rate_limited');
  return answers.filter((answer) => answer.status === 'fulfilled').length;
}

describe('the rate limit', () => {
  test.each([1, 2, 3])('is exact to 1 % when everything comes at once to %i processes', async (processes) => {
    const limiters = Array.from({ length: processes }, () => new RateLimiter(app.db, 1000));
    const through = await allowed(limiters, 1300);
    expect(through).toBeGreaterThanOrEqual(990);
    expect(through).toBeLessThanOrEqual(1010);
  });

  test('is kept over a restart and begins anew with the hour', async () => {
    expect(await allowed([new RateLimiter(app.db, 100)], 80)).toBe(80);
    expect(await allowed([new RateLimiter(app.db, 100)], 80)).toBe(20);
    expect(await allowed([new RateLimiter(app.db, 100)], 80, new Date('2030-01-01T11:00:00Z'))).toBe(80);
  });

  test('tells how many are left and when the window ends', async () => {
    const limiter = new RateLimiter(app.db, 2);
    const reset = String(Date.parse('2030-01-01T11:00:00Z') / 1000);
    const headers = { 'X-RateLimit-Limit': '2', 'X-RateLimit-Reset': reset };
    expect((await limiter.count(tokenId, NOW)).headers).toEqual({ ...headers, 'X-RateLimit-Remaining': '1' });
    expect((await limiter.count(tokenId, NOW)).headers).toEqual({ ...headers, 'X-RateLimit-Remaining': '0' });
    await expect(async () => limiter.count(tokenId, NOW)).rejects.toMatchObject({
      headers: { ...headers, 'X-RateLimit-Remaining': '0', 'Retry-After': '2400' },
    });
  });

  test('counts nothing where it is switched off', async () => {
    expect(await allowed([new RateLimiter(app.db, 0)], 50)).toBe(50);
    expect(await app.db.selectFrom('rate_window').selectAll().where('token_id', '=', tokenId).execute()).toEqual([]);
  });
});
