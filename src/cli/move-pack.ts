import { existsSync } from 'node:fs';
import { readdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Base } from '#app/install.ts';
import { withRuntimes } from '#app/inventory.ts';
import { backUp } from '#app/restore.ts';
import { withBase } from '#cli/base.ts';
import { print } from '#cli/print.ts';
import { Progress } from '#cli/progress.ts';
import { answersReady } from '#cli/running.ts';
import { newId } from '#kernel/ids.ts';
import { embeddedPostmaster } from '#platform/database/embedded.ts';
import { sql, type Database } from '#platform/database/index.ts';
import { packInstallation, type VolumeSource } from '#platform/move/archive.ts';
import { megabytes, requireSpace } from '#platform/move/disk-space.ts';
import { sizeOfFiles } from '#platform/move/files.ts';
import type { MoveManifest } from '#platform/move/format.ts';
import { readPassphrase } from '#platform/move/passphrase.ts';
import { nameOf, readSteadily } from '#platform/move/steadily.ts';
import { moveFolder, readRecord, sentences, withMoveLock, writeRecord } from '#platform/move/record.ts';
import type { Settings } from '#platform/settings/index.ts';
import { RuntimeError, type Handle, type MachineRuntimes, type Runtime } from '#runtimes/runtime.ts';

export interface MoveOptions {
  passphraseFile?: string;
}

/** Milliseconds for a service to end: longer than any grace period. */
const STOP_MS = 3_900_000;
/** Milliseconds in which a runtime measures its volumes. */
const MEASURE_MS = 600_000;
/** Milliseconds after which a service that runs has shown a sign of life: a heartbeat comes every 20 s. */
const BEAT_MS = 25_000;
/** Services that are stopped at a time. */
const STOPPED_AT_ONCE = 8;

/** Writes the whole installation into an archive, and lets it not start any more. Throws Error, with nothing changed where it is refused. */
export async function packCommand(settings: Settings, given: string, options: MoveOptions): Promise<void> {
  const { dataDir } = settings;
  const file = path.resolve(given);
  if (!existsSync(path.join(dataDir, 'node-id')))
    throw new Error(`There is no installation in ${dataDir}: set QUARTERDECK_DATA_DIR to its data directory.`);
  const passphrase = options.passphraseFile === undefined ? undefined : readPassphrase(options.passphraseFile);
  await refuseTarget(settings, file);
  await withMoveLock(dataDir, async () => {
    const record = readRecord(dataDir);
    if (record && record.state !== 'packing') throw new Error(`Nothing was packed: ${sentences(record)}`);
    await removeAbandoned(file);
    const progress = new Progress();
    const tell = (text: string) => progress.show(text);
    const { manifest, away } = await pack(settings, file, passphrase, tell).finally(() => progress.clear());
    print(await summary(file, manifest, away, passphrase !== undefined));
  });
}

async function refuseTarget({ dataDir }: Settings, file: string): Promise<void> {
  if (existsSync(file)) throw new Error(`${file} is there already: name another file, or remove that one first.`);
  const folder = await stat(path.dirname(file)).catch(() => null);
  if (!folder?.isDirectory())
    throw new Error(`There is no folder ${path.dirname(file)} for the archive: make it first.`);
  if (!path.relative(dataDir, file).startsWith('..'))
    throw new Error(`${file} lies in the data directory, which is packed itself: name a file elsewhere.`);
}

/** Removes what packings of the same file have left that were killed. */
export async function removeAbandoned(file: string): Promise<void> {
  if (!existsSync(path.dirname(file))) return;
  const begin = `${path.basename(file)}.`;
  for (const name of await readdir(path.dirname(file)))
    if (name.startsWith(begin) && /^\d+\.part$/.test(name.slice(begin.length)))
      await rm(path.join(path.dirname(file), name));
}

async function pack(
  settings: Settings,
  file: string,
  passphrase: string | undefined,
  tell: (text: string) => void,
): Promise<{ manifest: MoveManifest; away: string[] }> {
  const { dataDir } = settings;
  tell('Waiting whether the service runs');
  if (await answersReady(settings)) throw new Error(RUNS);
  const isQuiet = !settings.databaseUrl && embeddedPostmaster(path.join(dataDir, 'postgres')) === undefined;
  return withBase(settings, async (base) => {
    const { db } = base.database;
    if (!isQuiet) await refuseRunning(db);
    await refuseUnderWay(db);
    const away = await listAway(base);
    return withRuntimes(base, undefined, async (all) => {
      const runtimes = await openRuntimes(base, all);
      const { bytes: diskBytes } = await db
        .selectNoFrom(sql<number>`pg_database_size(current_database())::float8`.as('bytes'))
        .executeTakeFirstOrThrow();
      await refuseLittleSpace(settings, file, runtimes, diskBytes, tell);
      const since = new Date();
      const record = { id: newId(), file, since: since.toISOString() };
      writeRecord(dataDir, { ...record, state: 'packing' });
      try {
        tell('Stopping the services');
        await stopServices(db, runtimes);
        await all.endProxy();
        const copy = path.join(moveFolder(dataDir), 'database');
        await rm(copy, { force: true });
        const { manifest: backup } = await backUp(settings, copy, tell);
        const manifest = await packInstallation(file, {
          id: record.id,
          settings,
          backup: { file: copy, manifest: backup, diskBytes },
          volumes: await listVolumes(runtimes),
          passphrase,
          progress: tell,
          whole: async () => {
            await refuseStarted(db, since);
            // Before the archive has its name: there is no moment at which both could start.
            writeRecord(dataDir, { ...record, state: 'moved' });
          },
        });
        await rm(copy);
        return { manifest, away };
      } catch (error) {
        throw new Error(
          `${(error as Error).message}\nThe services are stopped, and nothing is lost: run this again, or give the move up with \`quarterdeck move undo\` and start the service.`,
          { cause: error },
        );
      }
    });
  });
}

const RUNS = 'The service runs: stop it first, by Ctrl-C or `systemctl stop quarterdeck`.';

/** Throws Error if a process of the installation shows a sign of life. One that was killed just now is waited for. */
async function refuseRunning(db: Database): Promise<void> {
  const seen = async () => {
    const rows = await db
      .selectFrom('node')
      .select(['name', 'seen_at', sql<number>`(extract(epoch from now() - seen_at) * 1000)::float8`.as('age')])
      .execute();
    return rows.filter(({ age }) => age < BEAT_MS);
  };
  const before = await seen();
  const youngest = Math.min(...before.map(({ age }) => age));
  for (const end = Date.now() + BEAT_MS - youngest; Date.now() < end; await sleep(500)) {
    const alive = (await seen()).find(({ name, seen_at }) =>
      before.every((one) => one.name !== name || one.seen_at.getTime() !== seen_at.getTime()),
    );
    if (alive) throw new Error(`${RUNS} It shows signs of life on the machine ${alive.name}.`);
  }
}

async function refuseStarted(db: Database, since: Date): Promise<void> {
  const row = await db.selectFrom('node').select('name').where('seen_at', '>', since).executeTakeFirst();
  if (row) throw new Error(`The service was started on ${row.name} meanwhile: stop it.`);
}

/** Throws Error while something is being deployed or executed: its end would be lost. */
async function refuseUnderWay(db: Database): Promise<void> {
  const { deployments, executions } = await db
    .selectNoFrom([
      sql<number>`(select count(*) from deployment where status in ('RUNNING', 'RECAP'))::int`.as('deployments'),
      sql<number>`(select count(*) from job_execution where state = 'RUNNING')::int`.as('executions'),
    ])
    .executeTakeFirstOrThrow();
  if (deployments + executions > 0)
    throw new Error(
      `${deployments} deployments and ${executions} executions of jobs are under way: start the service, let them end or cancel them, and stop it again. \`quarterdeck inspect work\` counts them.`,
    );
}

/** Returns the names of clusters on other machines of the installation, whose volumes stay there. */
async function listAway({ database: { db }, nodeId }: Base): Promise<string[]> {
  const rows = await db
    .selectFrom('cluster')
    .innerJoin('node', 'node.id', 'cluster.node_id')
    .select(['cluster.name', 'node.name as machine'])
    .where('cluster.node_id', '<>', nodeId)
    .orderBy('cluster.name')
    .execute();
  return rows.map(({ name, machine }) => `${name} on ${machine}`);
}

/** Opens the runtimes of this machine that clusters use. Throws Error if one cannot be reached, or cannot read its volumes. */
async function openRuntimes({ database: { db }, nodeId }: Base, all: MachineRuntimes): Promise<Runtime[]> {
  const rows = await db
    .selectFrom('cluster')
    .select('runtime')
    .distinct()
    .where((eb) => eb.or([eb('node_id', '=', nodeId), eb('node_id', 'is', null)]))
    .where('runtime', '<>', 'kubernetes')
    .execute();
  const runtimes: Runtime[] = [];
  for (const { runtime: name } of rows) {
    try {
      const runtime = await all.onMachine(name);
      await runtime.list?.();
      const refusal = (await runtime.volumes?.list())?.length ? await runtime.volumes!.refusal() : null;
      if (refusal) throw new Error(refusal);
      runtimes.push(runtime);
    } catch (error) {
      if (!(error instanceof RuntimeError)) throw error;
      throw new Error(`The runtime ${name}, which clusters of this machine use, cannot be asked: ${error.message}`, {
        cause: error,
      });
    }
  }
  return runtimes;
}

async function refuseLittleSpace(
  settings: Settings,
  file: string,
  runtimes: Runtime[],
  diskBytes: number,
  tell: (text: string) => void,
): Promise<void> {
  let bytes = diskBytes + (await sizeOfFiles(settings));
  for (const runtime of runtimes) {
    if (!runtime.volumes || (await runtime.volumes.list()).length === 0) continue;
    tell(`Measuring the volumes of the runtime ${runtime.name}`);
    bytes += (await runtime.diskUse?.(AbortSignal.timeout(MEASURE_MS)))?.volumes ?? 0;
  }
  await requireSpace([
    { folder: path.dirname(file), bytes },
    { folder: moveFolder(settings.dataDir), bytes: diskBytes },
  ]);
}

/** Stops everything that runs on this machine, what depends on others first. The database keeps that it should run. */
async function stopServices(db: Database, runtimes: Runtime[]): Promise<void> {
  const rows = await db
    .selectFrom('service')
    .innerJoin('deployment_stage as stage', 'stage.id', 'service.stage_id')
    .select(['service.id', 'service.handle', 'stage.position'])
    .execute();
  const known = new Map(rows.map((row) => [row.id, row]));
  for (const runtime of runtimes) {
    const running = ((await runtime.list?.()) ?? []).filter(({ state }) => state === 'running');
    const byStage = Map.groupBy(running, ({ identity }) => known.get(identity.serviceId)?.position ?? Infinity);
    for (const [, found] of [...byStage].toSorted(([one], [other]) => other - one)) {
      const left = found.values();
      const stopSome = async () => {
        for (const { identity } of left) {
          const handle = (known.get(identity.serviceId)?.handle as Handle | null | undefined) ?? null;
          await runtime.stop(identity, handle, { signal: AbortSignal.timeout(STOP_MS), log: () => undefined });
        }
      };
      await Promise.all(Array.from({ length: STOPPED_AT_ONCE }, stopSome));
    }
  }
}

async function listVolumes(runtimes: Runtime[]): Promise<VolumeSource[]> {
  const listed = runtimes.map(async ({ name, volumes }) =>
    ((await volumes?.list()) ?? []).map((volume) => ({
      ...volume,
      runtime: name,
      read: () => readSteadily({ name: nameOf(volume) }, (signal) => volumes!.read(volume, signal)),
    })),
  );
  return (await Promise.all(listed)).flat();
}

async function summary(file: string, manifest: MoveManifest, away: string[], isEncrypted: boolean): Promise<string> {
  const { database, volumes } = manifest;
  const content = `the database as of ${database.takenAt}, the key of the vault, backups of databases, and ${volumes.length} volumes`;
  return [
    `Packed into ${file} (${megabytes((await stat(file)).size)}): ${content}.`,
    isEncrypted
      ? 'It is encrypted: without the passphrase it cannot be read.'
      : 'It is as secret as the key of the vault: it has that key, and the content of every volume. Whoever reads it can read all secrets. `--passphrase-file` encrypts it.',
    'The service does not start here any more; `quarterdeck move undo` takes that back. Nothing was removed.',
    ...(away.length > 0 ? [`Not in it are the volumes of clusters on other machines: ${away.join(', ')}.`] : []),
    '',
    `Copy it to the new machine, and run \`quarterdeck move unpack ${path.basename(file)}\` there.`,
  ].join('\n');
}
