import { expect, test, vi } from 'vitest';
import { Periodic } from '#platform/work/periodic.ts';

test('a look never runs beside itself, and one that fails is told and keeps no later one from its time', async () => {
  const errors: unknown[] = [];
  let looks = 0;
  let running = 0;
  const periodic = new Periodic(
    5,
    async () => {
      expect(++running).toBe(1);
      await new Promise((resolve) => setTimeout(resolve, 12));
      running--;
      if (++looks === 1) throw new Error('the first');
    },
    (error) => errors.push(error),
  );
  periodic.start();
  await vi.waitFor(() => expect(looks).toBeGreaterThan(2), 40_000);
  await periodic.stop();
  expect(errors).toEqual([new Error('the first')]);
});

test('a stop waits for the look that is under way, and no other one begins', async () => {
  const { promise: held, resolve: free } = Promise.withResolvers<void>();
  let looks = 0;
  const periodic = new Periodic(
    1,
    () => {
      looks++;
      return held;
    },
    () => expect.unreachable(),
  );
  periodic.start();
  const joined = periodic.look();
  let isStopped = false;
  const stopped = periodic.stop().then(() => (isStopped = true));
  await new Promise((resolve) => setTimeout(resolve, 10));
  expect(isStopped).toBe(false);
  free();
  await Promise.all([stopped, joined, periodic.settled()]);
  expect(looks).toBe(1);
});
