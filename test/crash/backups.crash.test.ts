import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { beforeAll, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { systemContext } from '#platform/context.ts';
import { readBackup } from '#services/kinds/database/backups/file.ts';
import { fileOf } from '#services/kinds/database/backups/new-backup.ts';
import { findBackup, insertRestore } from '#services/kinds/database/backups/queries.ts';
import { BackupWorker } from '#services/kinds/database/backups/worker.ts';
import type { Runtime } from '#runtimes/runtime.ts';
import type { HttpActor } from '#test/crash/harness/actor.ts';
import { createFileServer } from '#test/crash/harness/file-server.ts';
import { useMachine } from '#test/crash/harness/machine.ts';
import { startChild } from '#test/crash/harness/process.ts';
import { until } from '#test/crash/harness/until.ts';

const FIXTURE = path.join(import.meta.dirname, 'backups.fixture.ts');
/** Lease of a claim, in seconds: short, so that a dead worker's claim is soon free. */
const LEASE_SECONDS = 1;
const CONTENT_BYTES = 300_000;

const machine = useMachine();
const nodeId = newId();
let actor: HttpActor;

beforeAll(async () => {
  await machine.start('api', { role: 'api' });
  actor = await machine.organization('backups');
  await machine.db.insertInto('node').values({ id: nodeId, name: 'test' }).execute();
});

interface Database {
  id: string;
  file: string;
  /** Initial content of the file. */
  content: Buffer;
}

let made = 0;

async function makeDatabase(): Promise<Database> {
  const environment = await actor.environment(`p ${++made}`);
  const body = { name: 'store', type: 'MYSQL', version: '8.0', mode: 'CONTAINER' };
  const { id } = await actor.ask('POST', `/environment/${environment}/database`, 201, body);
  const file = path.join(machine.dataDir, `${id}.content`);
  const content = randomBytes(CONTENT_BYTES);
  writeFileSync(file, content);
  const handle = JSON.stringify({ runtime: 'fake', identity: { generation: 2 ** 32 }, file });
  await machine.db.updateTable('service').set({ wanted: 'running', handle }).where('id', '=', id).execute();
  return { id, file, content };
}

const requestBackup = async ({ id }: Database): Promise<string> =>
  (await actor.ask('POST', `/database/${id}/backup`, 201, { name: 'b', message: '' })).id;

type Table = 'database_backup' | 'database_restore';

const endOf = async (table: Table, id: string) => {
  const row = await machine.db
    .selectFrom(table)
    .select(['status', 'error'])
    .where('id', '=', id)
    .executeTakeFirstOrThrow();
  return ['READY', 'FAILED'].includes(row.status) && row;
};

/** Completes the backup or restore with a worker in this process, after another worker was killed. */
async function carryOn(table: Table, id: string) {
  const runtime = createFileServer(() => undefined) as Runtime;
  const { platform } = machine;
  const options = {
    platform,
    nodeId,
    runtimes: { runtimeOf: async () => runtime },
    leaseSeconds: LEASE_SECONDS,
    pollMs: 50,
  };
  const worker = new BackupWorker(options);
  worker.start();
  try {
    const end = await until('it has ended', () => endOf(table, id));
    // The other work that the killed worker began ends too.
    await until('nothing is under way', async () => {
      const query = machine.db.selectFrom('database_backup').select('id').where('status', 'in', ['QUEUED', 'RUNNING']);
      return !(await query.limit(1).executeTakeFirst());
    });
    return end;
  } finally {
    await worker.stop();
  }
}

/** Kills a worker at its first kill point, the next at its second, and so on until one survives. Returns the number of kill points. */
async function walk(
  table: Table,
  prepare: () => Promise<string>,
  check: (id: string) => Promise<void>,
): Promise<number> {
  for (let dieAt = 1; ; dieAt++) {
    const id = await prepare();
    const order = {
      config: machine.databaseConfig,
      environment: machine.environment,
      nodeId,
      leaseSeconds: LEASE_SECONDS,
      dieAt,
      every: false,
    };
    const env = { PATH: process.env.PATH, NODE_COMPILE_CACHE: machine.environment['NODE_COMPILE_CACHE'] };
    const child = startChild(FIXTURE, [], env, JSON.stringify(order));
    await until('it dies or has done it', async () => !child.running || (await endOf(table, id)));
    const lived = child.running;
    if (lived) await child.kill();
    expect(await carryOn(table, id), child.output).toEqual({ status: 'READY', error: null });
    await check(id);
    if (lived) return dieAt - 1;
  }
}

async function contentOf(backupId: string): Promise<Buffer> {
  const row = (await findBackup(machine.db, [actor.organizationId], backupId))!;
  return buffer(readBackup(await fileOf(systemContext(machine.platform), row)));
}

/** Checks that each finished backup has a file, and that there is no other file. */
async function expectNothingLeft(): Promise<void> {
  const rows = await machine.db.selectFrom('database_backup').select('id').where('status', '=', 'READY').execute();
  const folder = path.join(machine.dataDir, 'backups', actor.organizationId);
  const files = existsSync(folder) ? readdirSync(folder).toSorted() : [];
  expect(files).toEqual(rows.map(({ id }) => `${id}.qdb`).toSorted());
}

test(
  'a backup whose worker is killed at any of its doings is made by the next one, whole, and leaves no other file',
  { timeout: 300_000 },
  async () => {
    let database!: Database;
    const prepare = async () => requestBackup((database = await makeDatabase()));
    const deaths = await walk('database_backup', prepare, async (id) => {
      expect((await contentOf(id)).equals(database.content)).toBe(true);
      await expectNothingLeft();
    });
    expect(deaths).toBeGreaterThan(8);
  },
);

test(
  'a restore whose worker is killed at any of its doings is done by the next one, and what it replaced is kept',
  { timeout: 300_000 },
  async () => {
    let database!: Database;
    const replaced = randomBytes(CONTENT_BYTES);
    const prepare = async () => {
      database = await makeDatabase();
      const backup_id = await requestBackup(database);
      await carryOn('database_backup', backup_id);
      writeFileSync(database.file, replaced);
      const id = newId();
      const of = { organization_id: actor.organizationId, database_id: database.id, backup_id };
      await insertRestore(machine.db, { ...of, id, status: 'QUEUED', replaces: [], requested_by_name: 'test' });
      return id;
    };
    const deaths = await walk('database_restore', prepare, async (id) => {
      expect(readFileSync(database.file).equals(database.content)).toBe(true);
      const row = machine.db.selectFrom('database_restore').select('safety_backup_id').where('id', '=', id);
      const { safety_backup_id } = await row.executeTakeFirstOrThrow();
      expect((await contentOf(safety_backup_id!)).equals(replaced)).toBe(true);
      await expectNothingLeft();
    });
    expect(deaths).toBeGreaterThan(12);
  },
);
