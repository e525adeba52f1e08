import { expect, test } from 'vitest';
import { SharedLooks } from '#platform/sockets/shared-look.ts';

/** Follows a key and keeps what comes. */
function follow(looks: SharedLooks<number>, key: string, read: () => Promise<number>) {
  const leaving = new AbortController();
  const seen: number[] = [];
  const ended = (async () => {
    for await (const value of looks.follow(key, read, leaving.signal)) seen.push(value);
  })();
  return { seen, ended, leave: () => leaving.abort() };
}

test('followers of one key share its reads, and the reads end with the last follower', async () => {
  const looks = new SharedLooks<number>(10);
  let reads = 0;
  const read = async () => ++reads;
  const one = follow(looks, 'a', read);
  await expect.poll(() => one.seen.length).toBeGreaterThan(2);
  const other = follow(looks, 'a', () => Promise.reject(new Error('A second reader was asked.')));
  await expect.poll(() => other.seen.length).toBeGreaterThan(2);
  one.leave();
  await one.ended;
  const seen = other.seen.length;
  await expect.poll(() => other.seen.length).toBeGreaterThan(seen);
  other.leave();
  await other.ended;
  const before = reads;
  const third = follow(looks, 'b', async () => 1);
  await expect.poll(() => third.seen.length).toBeGreaterThan(3);
  // The read that was due when the last follower left is the most that comes after it.
  expect(reads - before).toBeLessThanOrEqual(1);
  third.leave();
});

test('a follower that comes while the first read, whose follower has left, is still going on shares that read', async () => {
  const looks = new SharedLooks<number>(10);
  let [reads, atOnce, most] = [0, 0, 0];
  const gate = Promise.withResolvers<void>();
  const read = async () => {
    most = Math.max(most, ++atOnce);
    await gate.promise;
    atOnce--;
    return ++reads;
  };
  const early = follow(looks, 'a', read);
  early.leave();
  await early.ended;
  const late = follow(looks, 'a', read);
  gate.resolve();
  await expect.poll(() => late.seen.length).toBeGreaterThan(2);
  expect(most).toBe(1);
  late.leave();
  await late.ended;
});

test('a failed read ends its followers with its error, and the next follower begins anew', async () => {
  const looks = new SharedLooks<number>(10);
  const failing = follow(looks, 'a', () => Promise.reject(new Error('no answer')));
  await expect(failing.ended).rejects.toThrow('no answer');
  const next = follow(looks, 'a', async () => 7);
  await expect.poll(() => next.seen[0]).toBe(7);
  next.leave();
  await next.ended;
});

test('a follower that takes its time gets the newest value, not each in between', async () => {
  const looks = new SharedLooks<number>(5);
  let reads = 0;
  const leaving = new AbortController();
  const values = looks.follow('a', async () => ++reads, leaving.signal);
  expect((await values.next()).value).toBe(1);
  await expect.poll(() => reads).toBeGreaterThan(5);
  const { value } = await values.next();
  expect(value).toBeGreaterThan(5);
  leaving.abort();
  expect((await values.next()).done).toBe(true);
});
