// Process that works on the items of a test (src/platform/work/work.fixture.ts). Reads its options as JSON from standard input.
import { setTimeout as sleep } from 'node:timers/promises';
import { text } from 'node:stream/consumers';
import type { ClientConfig } from 'pg';
import { pino } from 'pino';
import { newId } from '#kernel/ids.ts';
import { openDatabase, sql } from '#platform/database/index.ts';
import { WorkLoop } from '#platform/work/index.ts';
import { endItem, leaveEffect, testKind } from '#platform/work/work.fixture.ts';

interface Order {
  config: ClientConfig;
  worker: string;
  leaseSeconds: number;
  slots: number;
  /** Milliseconds between the two effects of a run. */
  stepMs: number;
}

const { config, worker, leaseSeconds, slots, stepMs } = JSON.parse(await text(process.stdin)) as Order;
const { db, close } = openDatabase({ config: { ...config, max: 6, connectionTimeoutMillis: 2_000 } });
const kind = testKind(
  db,
  async (claim, lease) => {
    for (const step of ['first', 'second']) {
      lease.hold();
      await leaveEffect(db, claim.id, worker, step);
      process.stdout.write(`${step}\n`);
      await sleep(stepMs);
    }
    lease.hold();
    await db.transaction().execute(async (transaction) => {
      await endItem(transaction, claim);
      await leaveEffect(transaction, claim.id, worker, 'end');
    });
  },
  { leaseSeconds, slots, attempts: { most: 100, of: ({ attempts }) => attempts, giveUp: () => Promise.resolve() } },
);
const loop = new WorkLoop(kind, { platform: { db, log: pino({ level: 'silent' }) }, nodeId: newId() });
await sql`select 1`.execute(db);
loop.start();
process.stdout.write('started\n');
process.on('SIGTERM', () => void loop.stop().then(close));
