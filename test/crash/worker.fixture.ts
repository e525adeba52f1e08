// A worker that kills itself at its n-th doing: a statement that it sends, or a call of git or of the runtime that begins or has ended.
// Its order comes as JSON on the standard input. It says each doing that it comes to, so that a test that fails can tell where.
import path from 'node:path';
import { text } from 'node:stream/consumers';
import pg from 'pg';
import { pino } from 'pino';
import { createWorker } from '#app/engine.ts';
import { createSources } from '#app/sources.ts';
import { FORMATS } from '#deployments/model/snapshot.ts';
import { systemClock } from '#kernel/clock.ts';
import { openDatabase } from '#platform/database/index.ts';
import { readSettings } from '#platform/settings/index.ts';
import { openInstallation, readVaultKeys } from '#platform/vault/key.ts';
import { createFakeRuntime } from '#runtimes/fake/index.ts';

interface Order {
  config: pg.ClientConfig;
  environment: Record<string, string>;
  nodeId: string;
  /** The doing, counted from 1 after the start, at which it dies; 0 for never. */
  dieAt: number;
  /** Counts each statement; else those between the beginning of a transaction and its commit are left out: dying at one rolls back like dying at any. */
  every: boolean;
  /** Formats that it knows, for another version of the program than this one. */
  formats?: number[];
}

const order = JSON.parse(await text(process.stdin)) as Order;
let count = 0;
let counting = false;

function doing(what: string): void {
  if (!counting || ++count !== order.dieAt) return;
  process.stdout.write(`dies at ${count}: ${what.slice(0, 300)}\n`);
  process.kill(process.pid, 'SIGKILL');
}

/** The same object, whose asynchronous methods are doings at their beginning and end. */
function watched<T extends object>(name: string, object: T): T {
  return new Proxy(object, {
    get(target, key) {
      const value = Reflect.get(target, key, target) as unknown;
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => {
        const answer = value.apply(target, args) as unknown;
        if (!(answer instanceof Promise)) return answer;
        return answer.finally(() => doing(`${name}.${String(key)} has ended`));
      };
    },
  });
}

const query = pg.Client.prototype.query as (...args: any[]) => any;
const inTransaction = new WeakSet<pg.Client>();
pg.Client.prototype.query = function (this: pg.Client, first: any, ...rest: any[]) {
  const statement: string = typeof first === 'string' ? first : first.text;
  const ends = /^(commit|rollback)/i.test(statement);
  if (order.every || ends || !inTransaction.has(this)) doing(statement);
  if (ends) inTransaction.delete(this);
  else if (/^(begin|start)/i.test(statement)) inTransaction.add(this);
  return query.call(this, first, ...rest);
} as never;

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
  { get: async () => runtime },
  watched('git', createSources(platform)),
);
if (order.formats) FORMATS.splice(0, FORMATS.length, ...order.formats);
counting = true;
await worker.start();
process.stdout.write('started\n');
