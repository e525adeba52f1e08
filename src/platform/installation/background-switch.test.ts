import { afterEach, expect, test, vi } from 'vitest';
import { BackgroundSwitch } from '#platform/installation/background-switch.ts';
import { enterReadOnly, leaveReadOnly, readInstallation, removeGuards } from '#platform/installation/index.ts';
import { useApp } from '#test/harness/app.ts';

const app = useApp();
afterEach(() => void vi.useRealTimers());

/** Returns a base on the database of the tests, and work that counts its beginnings and ends. */
function parts() {
  const base = { database: { db: app.db }, installation: { epoch: 0 }, log: app.platform.log };
  const seen = { begun: 0, ended: 0 };
  const held = Promise.withResolvers<void>();
  const begin = async () => {
    seen.begun++;
    await held.promise;
    return async () => void seen.ended++;
  };
  return { base, seen, begin, goOn: held.resolve };
}

test('work that takes seconds to begin is begun once, and what was begun is ended', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const { base, seen, begin, goOn } = parts();
  const started = BackgroundSwitch.start(base, begin);
  await expect.poll(() => seen.begun).toBe(1);
  for (let look = 0; look < 3; look++) {
    vi.advanceTimersByTime(1_000);
    // Every statement of a look would be behind these.
    for (let statement = 0; statement < 5; statement++) await readInstallation(app.db);
  }
  expect(seen.begun).toBe(1);
  goOn();
  await (await started).stop();
  expect(seen).toEqual({ begun: 1, ended: 1 });
});

test('work ends while the installation is read-only, and begins again with its new epoch', async () => {
  const { base, seen, begin, goOn } = parts();
  goOn();
  const background = await BackgroundSwitch.start(base, begin);
  await app.db.transaction().execute((db) => enterReadOnly(db, new Date('2026-01-01T00:00:00Z')));
  await expect.poll(() => seen).toEqual({ begun: 1, ended: 1 });
  await leaveReadOnly(app.db, 7);
  await expect.poll(() => seen).toEqual({ begun: 2, ended: 1 });
  expect(base.installation.epoch).toBe(7);
  await removeGuards(app.db);
  await background.stop();
  expect(seen).toEqual({ begun: 2, ended: 2 });
});

test('work that cannot begin is told to whoever starts it, and nothing looks on', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const { base } = parts();
  await expect(BackgroundSwitch.start(base, () => Promise.reject(new Error('no port')))).rejects.toThrow('no port');
  expect(vi.getTimerCount()).toBe(0);
});
