// Worker of backups and restores that kills itself at its n-th kill point. Reads its options as JSON from standard input.
import { text } from 'node:stream/consumers';
import type { ClientConfig } from 'pg';
import { pino } from 'pino';
import { systemClock } from '#kernel/clock.ts';
import { openDatabase } from '#platform/database/index.ts';
import { readSettings } from '#platform/settings/index.ts';
import { openInstallation, readVaultKeys } from '#platform/vault/key.ts';
import { BackupWorker } from '#services/kinds/database/backups/worker.ts';
import type { Runtime } from '#runtimes/runtime.ts';
import { dieAtOneOf, type Death } from '#test/crash/harness/dying.ts';
import { createFileServer } from '#test/crash/harness/file-server.ts';

interface Order extends Death {
  config: ClientConfig;
  environment: Record<string, string>;
  nodeId: string;
  leaseSeconds: number;
}

const order = JSON.parse(await text(process.stdin)) as Order;
const { begin, doing } = dieAtOneOf(order);
const settings = readSettings(order.environment);
const { db } = openDatabase({ config: { ...order.config, max: 4 } });
const { vault } = await openInstallation(db, readVaultKeys(settings.vaultKeyFile, false));
const runtime = createFileServer(doing) as Runtime;
const worker = new BackupWorker({
  platform: { db, vault, settings, clock: systemClock, log: pino({ level: 'silent' }), notify: () => undefined },
  nodeId: order.nodeId,
  runtimes: { runtimeOf: async () => runtime },
  leaseSeconds: order.leaseSeconds,
  pollMs: 50,
});
begin();
worker.start();
process.stdout.write('started\n');
