import { expect, test, vi } from 'vitest';
import { LeasedWork } from '#platform/work/leased-work.ts';

const begin = (work: LeasedWork, token: string) => {
  const { promise: signal, resolve } = Promise.withResolvers<AbortSignal>();
  void work.begin(token, async ({ signal: own }) => {
    resolve(own);
    await new Promise((end) => own.addEventListener('abort', end));
  });
  return signal;
};

test('a process leaves to others what it could not renew for two thirds of the lease, and nothing else', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  try {
    const work = new LeasedWork(15);
    const [locked, free] = await Promise.all(['locked', 'free'].map((token) => begin(work, token)));
    const renew = () =>
      work.renew(async (tokens) => tokens.map((token) => ({ token, reason: null, renewed: token === 'free' })));
    vi.advanceTimersByTime(9_000);
    await renew();
    expect(work.watch()).toBe(false);
    expect([locked!.aborted, free!.aborted]).toEqual([false, false]);
    vi.advanceTimersByTime(2_000);
    expect(work.watch()).toBe(false);
    expect([locked!.reason, free!.aborted]).toEqual(['lost', false]);
    vi.advanceTimersByTime(9_000);
    expect(work.watch()).toBe(true);
    expect(free!.reason).toBe('lost');
  } finally {
    vi.useRealTimers();
  }
});
