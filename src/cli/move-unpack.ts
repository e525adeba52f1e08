import { existsSync } from 'node:fs';
import path from 'node:path';
import { openBase } from '#app/install.ts';
import { noRouter } from '#app/inventory.ts';
import { accept, restore } from '#app/restore.ts';
import { createRuntimes } from '#app/runtimes.ts';
import type { MoveOptions } from '#cli/move-pack.ts';
import { print } from '#cli/print.ts';
import { Progress } from '#cli/progress.ts';
import { refuseStrangers, requireEmpty } from '#platform/backup/index.ts';
import { openDatabase } from '#platform/database/index.ts';
import { openServer } from '#platform/database/server.ts';
import { readInstallation } from '#platform/installation/index.ts';
import { verifyInstallation, type VerifiedArchive } from '#platform/move/archive.ts';
import { requireSpace } from '#platform/move/disk-space.ts';
import { signsOfInstallation, unpackFiles, writeContent } from '#platform/move/files.ts';
import { DATABASE, FILES, folderOf, type MoveManifest } from '#platform/move/format.ts';
import { readPassphrase } from '#platform/move/passphrase.ts';
import { nameOf, writeSteadily } from '#platform/move/steadily.ts';
import { moveFolder, readRecord, removeRecord, sentences, withMoveLock, writeRecord } from '#platform/move/record.ts';
import type { Settings } from '#platform/settings/index.ts';
import { createQuietLog } from '#platform/telemetry/log.ts';
import type { MachineRuntimes, Runtime } from '#runtimes/runtime.ts';

export interface UnpackOptions extends MoveOptions {
  readOnly?: true;
}

type Tell = (text: string) => void;

/** SQLSTATE of a table that is not there. */
const NO_TABLE = '42P01';

/** Makes the installation of an archive where there is none. Repeated after a kill it goes on. Throws Error, with nothing changed where it is refused. */
export async function unpackCommand(settings: Settings, given: string, options: UnpackOptions): Promise<void> {
  const { dataDir } = settings;
  const file = path.resolve(given);
  if (!existsSync(file)) throw new Error(`There is no file ${file}.`);
  const passphrase = options.passphraseFile === undefined ? undefined : readPassphrase(options.passphraseFile);
  refusePresent(settings);
  await withMoveLock(dataDir, async () => {
    refusePresent(settings);
    const progress = new Progress();
    const tell = (text: string) => progress.show(text);
    try {
      tell(`Checking ${file}`);
      const archive = await verifyInstallation(file, passphrase);
      const runtimes = createRuntimes(settings, archive.manifest.database.installation.id, createQuietLog(), noRouter);
      try {
        await unpack(settings, { file, archive, runtimes, isReadOnly: options.readOnly ?? false, tell });
      } finally {
        await runtimes.close();
      }
      progress.clear();
      print(summary(archive.manifest, options.readOnly ?? false));
    } finally {
      progress.clear();
    }
  });
}

/** Throws Error if the data directory has an installation that is not one which this command has begun. */
function refusePresent(settings: Settings): void {
  const record = readRecord(settings.dataDir);
  if (record?.state === 'unpacking') return;
  if (record) throw new Error(`Nothing was unpacked: ${sentences(record)}`);
  const signs = signsOfInstallation(settings);
  if (signs.length > 0)
    throw new Error(
      `Nothing was unpacked, because there is an installation already (${signs.join(', ')}): uninstall it, or set QUARTERDECK_DATA_DIR to another folder.`,
    );
}

interface Unpacking {
  file: string;
  archive: VerifiedArchive;
  runtimes: MachineRuntimes;
  isReadOnly: boolean;
  tell: Tell;
}

async function unpack(settings: Settings, { file, archive, runtimes, isReadOnly, tell }: Unpacking): Promise<void> {
  const { dataDir } = settings;
  const { manifest } = archive;
  const record = readRecord(dataDir);
  if (record && record.id !== manifest.id)
    throw new Error(
      `${file} is another archive than ${record.file}, of which ${dataDir} has a part: go on with that one, or remove ${dataDir} first.`,
    );
  const used = await openRuntimes(runtimes, manifest);
  if (!record) await refuseEarly(settings, manifest, used, tell);
  writeRecord(dataDir, { state: 'unpacking', file, since: record?.since ?? new Date().toISOString(), id: manifest.id });
  const copy = path.join(moveFolder(dataDir), 'database');
  const volumes = new Map(manifest.volumes.map((volume) => [folderOf(volume), volume]));
  let count = 0;
  await archive.read(async (folder, content) => {
    if (folder === DATABASE) return writeContent(copy, content);
    if (folder === FILES) return unpackFiles(settings, content);
    tell(`Unpacking volume ${++count} of ${volumes.size}`);
    const volume = volumes.get(folder)!;
    const { volumes: contents } = used.get(volume.runtime)!;
    await writeSteadily({ name: nameOf(volume) }, content, (tar, signal) => contents!.write(volume, tar, signal));
  });
  if (!(record && (await isRestored(settings, manifest, tell)))) await restore(settings, copy, tell);
  if (!isReadOnly) await begin(settings, tell);
  removeRecord(dataDir);
}

/** Opens the runtimes that volumes of the archive need. Throws Error if one is missing here. */
async function openRuntimes(runtimes: MachineRuntimes, { volumes }: MoveManifest): Promise<Map<string, Runtime>> {
  const used = new Map<string, Runtime>();
  for (const name of new Set(volumes.map(({ runtime }) => runtime))) {
    const runtime = await runtimes.onMachine(name);
    const refusal = await runtime.volumes?.refusal();
    if (refusal) throw new Error(`Nothing was unpacked. ${refusal}`);
    used.set(name, runtime);
  }
  return used;
}

/** Throws Error for everything that would only turn out in the middle. */
async function refuseEarly(
  settings: Settings,
  manifest: MoveManifest,
  used: Map<string, Runtime>,
  tell: Tell,
): Promise<void> {
  const { database, files, volumes, asRoot } = manifest;
  await refuseStrangers(database);
  const isRoot = process.getuid?.() === 0;
  if (asRoot !== isRoot && volumes.some(({ runtime }) => runtime === 'host'))
    throw new Error(
      `Nothing was unpacked: the service ran ${asRoot ? 'as root' : 'not as root'} on ${manifest.machine}, and files in volumes belong to the accounts of that. Run this ${asRoot ? 'as root' : 'as an ordinary user'}, and the service too.`,
    );
  const needs = [{ folder: settings.dataDir, bytes: files.bytes + database.bytes + database.diskBytes }];
  for (const [name, runtime] of used) {
    if (name === 'docker') await refuseSameEngine(runtime);
    const folder = await runtime.volumes!.folder();
    const bytes = volumes.reduce((sum, volume) => sum + (volume.runtime === name ? volume.bytes : 0), 0);
    if (folder !== null) needs.push({ folder, bytes });
  }
  await requireSpace(needs);
  if (!settings.databaseUrl) return;
  const server = await openServer(settings, tell);
  try {
    await requireEmpty(server.directConfig);
  } finally {
    await server.close();
  }
}

/** Throws Error if the engine has something of the installation: it is the old one's, whose volumes would be overwritten. */
async function refuseSameEngine(runtime: Runtime): Promise<void> {
  const found = [...(await runtime.volumes!.list()), ...((await runtime.list?.()) ?? [])];
  if (found.length > 0)
    throw new Error(
      'Nothing was unpacked: the container engine of this machine has volumes or containers of the installation already. Set DOCKER_HOST to the engine of the new machine; to move only the data directory, stop the service and rename the folder.',
    );
}

/** Returns whether the backup of the archive is in the database. */
async function isRestored(settings: Settings, { database }: MoveManifest, tell: Tell): Promise<boolean> {
  const server = await openServer(settings, tell);
  const { db, close } = openDatabase({ config: { ...server.directConfig, max: 1 } });
  try {
    const { id, restoredFrom } = await readInstallation(db);
    return id === database.installation.id && restoredFrom?.getTime() === Date.parse(database.takenAt);
  } catch (error) {
    if ((error as { code?: string }).code === NO_TABLE) return false;
    throw error;
  } finally {
    await close();
    await server.close();
  }
}

/** Ends the read-only state. Nothing has run since the backup, so that what waited is still to be done, and what ran is to run again. */
async function begin(settings: Settings, tell: Tell): Promise<void> {
  const base = await openBase(settings, createQuietLog(), tell);
  try {
    const { readOnlySince } = await readInstallation(base.database.db);
    if (readOnlySince) await accept(base, { applyMissing: true, runWaiting: true, worldEpoch: 0 });
  } finally {
    await base.close();
  }
}

const summary = ({ machine, packedAt, volumes }: MoveManifest, isReadOnly: boolean): string =>
  [
    `The installation of ${machine} is here, as packed at ${packedAt}, with ${volumes.length} volumes.`,
    '',
    ...(isReadOnly
      ? [
          'It is read-only: `npm start` answers reads, and nothing is deployed, scheduled or sent.',
          'End that with `quarterdeck restore --accept --apply-missing --run-waiting`: what ran is then deployed.',
        ]
      : [
          'Start it with the same settings as before, by `npm start`. What ran is deployed by itself within a minute: images are built again.',
          '`quarterdeck world` shows what does not run yet.',
        ]),
    'Then change the DNS records to this machine, uninstall the old installation, and delete the archive.',
  ].join('\n');
