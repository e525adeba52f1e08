import { pino } from 'pino';
import { expect, test, vi } from 'vitest';
import { shutDown } from '#kernel/shutdown.ts';
import { UNWIND_SECONDS } from '#kernel/deadline.ts';

const never = () => new Promise<never>(() => undefined);
const limits = { wholeMs: 300, leastMs: 50 };

test('a step of the shutdown that hangs is left behind and named, and those before it are still run, in their order', async () => {
  const lines: string[] = [];
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
  const ran: string[] = [];
  const step = (name: string, run = async () => void ran.push(name)) => ({ name, run });
  await shutDown([step('database'), step('runtimes', never), step('workers', never), step('server')], log, limits);
  expect(ran).toEqual(['server', 'database']);
  expect(lines.map((line) => (JSON.parse(line) as { step: string }).step)).toEqual(['workers', 'runtimes']);
});

test('a step of the shutdown that fails keeps none from being run, and is told', async () => {
  const ran: string[] = [];
  const steps = [
    { name: 'database', run: async () => void ran.push('database') },
    { name: 'server', run: () => Promise.reject(new Error('no')) },
  ];
  await expect(shutDown(steps, pino({ level: 'silent' }), limits)).rejects.toThrow('no');
  expect(ran).toEqual(['database']);
});

test('where all steps hang the process ends before it is killed, and calls of the work in the background had the time to come back', async () => {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
  try {
    const left = new Map<string, number>();
    const write = (line: string) => {
      const { step, ms } = JSON.parse(line) as { step: string; ms: number };
      left.set(step, ms);
    };
    // As many as a process of the role `all` makes, with PostgreSQL of its own (src/app/start.ts).
    const others = Array.from({ length: 7 }, (_, at) => ({ name: `step ${at}`, run: never }));
    const steps = [{ name: 'database', run: never, leastMs: 5_000 }, ...others, { name: 'background', run: never }];
    const ended = shutDown(steps, pino({ level: 'warn' }, { write }));
    await vi.advanceTimersByTimeAsync(60_000);
    await ended;
    expect(left.get('background')).toBeGreaterThanOrEqual((UNWIND_SECONDS + 3) * 1_000);
    expect(left.get('database')).toBeGreaterThanOrEqual(5_000);
    expect([...left.values()].reduce((sum, ms) => sum + ms, 0)).toBeLessThanOrEqual(28_000);
    expect(left.size).toBe(steps.length);
  } finally {
    vi.useRealTimers();
  }
});
