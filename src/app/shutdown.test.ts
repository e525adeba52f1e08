import { pino } from 'pino';
import { expect, test } from 'vitest';
import { shutDown } from '#app/shutdown.ts';

const never = () => new Promise<never>(() => undefined);
const limits = { wholeMs: 300, leastMs: 50 };

test('a step of the shutdown that hangs is left behind and named, and those before it are still run, in their order', async () => {
  const lines: string[] = [];
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
  const ran: string[] = [];
  const step = (name: string, run = async () => void ran.push(name)) => ({ name, run });
  const began = performance.now();
  await shutDown([step('database'), step('runtimes', never), step('workers', never), step('server')], log, limits);
  expect(performance.now() - began).toBeLessThan(2_000);
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
