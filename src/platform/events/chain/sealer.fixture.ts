import { text } from 'node:stream/consumers';
import { pino } from 'pino';
import { systemClock } from '#kernel/clock.ts';
import type { Platform } from '#platform/context.ts';
import { openDatabase } from '#platform/database/index.ts';
import { AuditSealer } from '#platform/events/chain/index.ts';
import { openInstallation } from '#platform/vault/key.ts';

/** Process that seals until it is killed. The database's configuration and the key of the vault come as JSON on the standard input. */
const { config, key } = JSON.parse(await text(process.stdin));
const { db } = openDatabase({ config: { ...config, max: 2 } });
const { vault } = await openInstallation(db, [Buffer.from(key, 'base64')]);
const sealer = new AuditSealer({
  db,
  vault,
  clock: systemClock,
  log: pino({ level: 'silent' }),
} as unknown as Platform);
console.log('sealing');
for (;;) await sealer.sealAll();
