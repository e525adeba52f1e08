// Worker that kills itself at its n-th kill point: a statement that it sends, or the end of a call of git or the runtime.
// Reads its options as JSON from standard input. Prints the kill point at which it dies, so that a failed test can tell where it was.
import path from 'node:path';
import { text } from 'node:stream/consumers';
import type { ClientConfig } from 'pg';
import { pino } from 'pino';
import { createWorker } from '#app/engine.ts';
import { createSources } from '#app/git.ts';
import { FORMATS } from '#deployments/model/snapshot.ts';
import { systemClock } from '#kernel/clock.ts';
import { openDatabase } from '#platform/database/index.ts';
import { readSettings } from '#platform/settings/index.ts';
import { openInstallation, readVaultKeys } from '#platform/vault/key.ts';
import { createFakeRuntime } from '#runtimes/fake/index.ts';
import { dieAtOneOf, type Death } from '#test/crash/harness/dying.ts';

interface Order extends Death {
  config: ClientConfig;
  environment: Record<string, string>;
  nodeId: string;
  /** Formats that it supports, to stand for another version of the program. */
  formats?: number[];
}

const order = JSON.parse(await text(process.stdin)) as Order;
const { begin, watched } = dieAtOneOf(order);

const settings = readSettings(order.environment);
const open = openDatabase({ config: { ...order.config, max: 8 } });
const keys = readVaultKeys(settings.vaultKeyFile, false);
const { vault, installationId, epoch } = await openInstallation(open.db, keys);
const platform = {
  db: open.db,
  vault,
  settings,
  clock: systemClock,
  log: pino({ level: 'silent' }),
  notify: () => undefined,
};
const runtime = watched('runtime', createFakeRuntime({ directory: path.join(settings.dataDir, 'fake') }));
const worker = createWorker(
  {
    settings,
    platform,
    engineDatabase: open,
    directConfig: order.config,
    nodeId: order.nodeId,
    installation: { id: installationId, epoch },
  },
  { runtimeOf: async () => runtime },
  watched('git', createSources(platform)),
);
if (order.formats) FORMATS.splice(0, FORMATS.length, ...order.formats);
begin();
await worker.start();
process.stdout.write('started\n');
