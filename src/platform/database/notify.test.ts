import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { createListener, createNotifier, type Listener } from '#platform/database/notify.ts';

const config = inject('postgres');
const pool = new pg.Pool({ ...config, max: 4 });
const open: Listener[] = [];

/** Listens and keeps what comes as `channel:payload`. */
async function listen(channel: string): Promise<string[]> {
  const heard: string[] = [];
  const listener = createListener(config, [channel], (name, payload) => heard.push(`${name}:${payload}`));
  open.push(listener);
  await listener.ready;
  return heard;
}

beforeAll(() => void pool.on('error', () => undefined));
afterAll(async () => {
  await Promise.all(open.map((listener) => listener.close()));
  await pool.end();
});

describe('a notifier', () => {
  test('wakes every listener of the channel and nobody else', async () => {
    const [first, second, other] = [await listen('wake_a'), await listen('wake_a'), await listen('wake_b')];
    createNotifier(pool).notify('wake_a', 'x');
    await vi.waitFor(() => expect([first.at(-1), second.at(-1)]).toEqual(['wake_a:x', 'wake_a:x']), 40_000);
    expect(other).toEqual(['wake_b:']);
  });

  test('sends equal messages that wait together once, and none is lost', async () => {
    const heard = await listen('many');
    const statements = vi.spyOn(pool, 'query');
    const notifier = createNotifier(pool);
    for (let i = 0; i < 1000; i++) notifier.notify('many', `key ${i % 3}`);
    await notifier.flush();
    expect(statements).toHaveBeenCalledTimes(1);
    statements.mockRestore();
    notifier.notify('many', 'later');
    await vi.waitFor(() => expect(heard).toHaveLength(5), 40_000);
    expect(heard).toEqual(['many:', 'many:key 0', 'many:key 1', 'many:key 2', 'many:later']);
  });

  test('sends a message at once, and those that come just after it together', async () => {
    const heard = await listen('busy');
    const statements = vi.spyOn(pool, 'query');
    const notifier = createNotifier(pool);
    notifier.notify('busy', 'first');
    await vi.waitFor(() => expect(heard).toContain('busy:first'), 40_000);
    for (let i = 0; i < 3; i++) {
      notifier.notify('busy', `next ${i}`);
      await new Promise(setImmediate);
    }
    await notifier.flush();
    expect(statements.mock.calls.length).toBeLessThanOrEqual(3);
    statements.mockRestore();
    await vi.waitFor(() => expect(heard.slice(-3)).toEqual(['busy:next 0', 'busy:next 1', 'busy:next 2']), 40_000);
  });

  test('goes on after a batch that could not be sent, and tells of it', async () => {
    const errors: unknown[] = [];
    const notifier = createNotifier(pool, (error) => errors.push(error));
    const broken = vi.spyOn(pool, 'query').mockRejectedValueOnce(new Error('gone') as never);
    notifier.notify('again', 'lost');
    await notifier.flush();
    broken.mockRestore();
    expect(errors).toHaveLength(1);
    const heard = await listen('again');
    notifier.notify('again', 'heard');
    await vi.waitFor(() => expect(heard).toContain('again:heard'), 40_000);
  });

  test('refuses a payload that is data rather than a key', () => {
    expect(() => createNotifier(pool).notify('a', 'x'.repeat(1001))).toThrow('larger than 1000 bytes');
  });
});

describe('a listener', () => {
  test('whose connection is cut connects again, says so on every channel, and hears what comes then', async () => {
    const heard = await listen('cut');
    expect(heard).toEqual(['cut:']);
    await pool.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and application_name = 'quarterdeck listener' and query like '%cut%'`,
    );
    await vi.waitFor(() => expect(heard).toEqual(['cut:', 'cut:']), { timeout: 5000 });
    createNotifier(pool).notify('cut', 'x');
    await vi.waitFor(() => expect(heard.at(-1)).toBe('cut:x'), 40_000);
  });

  test('that cannot connect keeps trying until it is closed', async () => {
    const errors: unknown[] = [];
    const listener = createListener(
      { ...config, host: '/nowhere' },
      ['a'],
      () => undefined,
      (error) => errors.push(error),
    );
    await vi.waitFor(() => expect(errors.length).toBeGreaterThan(1), 40_000);
    await listener.close();
  });
});
