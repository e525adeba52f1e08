// Worker of pushes that kills itself at its n-th kill point. Reads its options as JSON from standard input.
import { text } from 'node:stream/consumers';
import type { ClientConfig } from 'pg';
import { pino } from 'pino';
import { systemClock } from '#kernel/clock.ts';
import { newId } from '#kernel/ids.ts';
import { openDatabase } from '#platform/database/index.ts';
import { readSettings } from '#platform/settings/index.ts';
import { openInstallation } from '#platform/vault/key.ts';
import { KINDS } from '#services/mount.ts';
import { createPushLoop } from '#services/pushes/work.ts';
import { dieAtOneOf, type Death } from '#test/crash/harness/dying.ts';

interface Order extends Death {
  config: ClientConfig;
}

const order = JSON.parse(await text(process.stdin)) as Order;
const { begin } = dieAtOneOf(order);
const { db } = openDatabase({ config: { ...order.config, max: 4 } });
const { vault } = await openInstallation(db, [Buffer.alloc(32)]).catch(() => ({ vault: {} as never }));
const platform = {
  db,
  vault,
  settings: readSettings({}),
  clock: systemClock,
  log: pino({ level: 'silent' }),
  notify: () => undefined,
};
const repositories = {
  changes: () => Promise.resolve({ author: 'Ada', message: '', paths: null }),
  head: () => Promise.reject(new Error('No branch is polled.')),
};
const loop = createPushLoop({ platform, kinds: KINDS, repositories }, newId());
begin();
loop.start();
process.stdout.write('started\n');
