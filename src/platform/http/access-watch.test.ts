import { once } from 'node:events';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import type { Principal } from '#platform/access/principal.ts';
import { AccessWatch } from '#platform/http/access-watch.ts';

const principal: Principal = { id: 'someone', kind: 'user', userId: 'someone', name: 'Someone', grants: [] };
const log = pino({ level: 'silent' });
const times = { checkMs: 5, lookMs: 20 };

test('what is open ends where nothing answers any more whether its caller may have it', async () => {
  const check = () => new Promise<never>(() => undefined);
  const watch = new AccessWatch(principal, { signal: new AbortController().signal, log, check, ...times });
  await once(watch.signal, 'abort');
  expect(watch.refusal).toMatchObject({ code: 'unavailable' });
});

test('what is open stays where a check takes long now and then', async () => {
  let looks = 0;
  const check = () => (++looks % 3 === 0 ? Promise.resolve(principal) : new Promise<never>(() => undefined));
  const watch = new AccessWatch(principal, { signal: new AbortController().signal, log, check, ...times });
  await expect.poll(() => looks).toBeGreaterThan(9);
  expect(watch.signal.aborted).toBe(false);
  watch.stop();
});
