import { mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import type pg from 'pg';
import { dumpDatabase, restoreDatabase, type Manifest } from '#platform/backup/index.ts';
import { decryptFile, encryptFile } from '#platform/copies/encryption.ts';
import { withScratchDatabase } from '#platform/copies/scratch.ts';
import { CopyStore, nameOfCopy, type StoredCopy } from '#platform/copies/store.ts';
import type { Database } from '#platform/database/index.ts';
import { RELEASE } from '#platform/release.ts';
import type { Settings } from '#platform/settings/index.ts';
import { readVaultKeys, vaultKeyFile } from '#platform/vault/key.ts';

/** Parts of an installation that copies are made from. */
export interface CopySource {
  settings: Settings;
  db: Database;
  /** Connection that does not go through a pooler. */
  directConfig: pg.ClientConfig;
  signal: AbortSignal;
}

/** Newest copies that stay however old they are: with nothing newer they are all that there is. */
const ALWAYS_KEPT = 3;

export const DAY_MS = 86_400_000;

/** Seconds for a backup, its way to the store and back, and a restore. */
export const DEADLINE_SECONDS = 6 * 3600;
/** Milliseconds after which the folder of a copy is taken for abandoned. */
const ABANDONED_MS = (DEADLINE_SECONDS + 3600) * 1000;

const keysOf = (settings: Settings): Buffer[] => readVaultKeys(vaultKeyFile(settings), false);

const folderOf = ({ dataDir }: Pick<Settings, 'dataDir'>): string => path.join(dataDir, 'copies');

/** Runs work in a folder of its own in the data directory. Backups hold whatever the database has: no other account reads it. */
async function inFolder<T>(settings: Pick<Settings, 'dataDir'>, work: (folder: string) => Promise<T>): Promise<T> {
  const parent = folderOf(settings);
  await mkdir(parent, { recursive: true, mode: 0o700 });
  const folder = await mkdtemp(path.join(parent, `${process.pid}-`));
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Removes what killed processes have left in the folder of copies. The maker may be in another container, so that only the age tells. */
export async function removeAbandonedCopies(settings: Pick<Settings, 'dataDir'>): Promise<void> {
  const parent = folderOf(settings);
  for (const name of await readdir(parent).catch(() => [])) {
    const folder = path.join(parent, name);
    const made = await stat(folder).catch(() => null);
    if (made && Date.now() - made.mtimeMs > ABANDONED_MS) await rm(folder, { recursive: true, force: true });
  }
}

/** Backs up the installation, encrypts that, sends it to the store and records it. */
export async function makeCopy(source: CopySource, store: CopyStore): Promise<StoredCopy> {
  const { settings, db, directConfig, signal } = source;
  return inFolder(settings, async (folder) => {
    const [plain, sealed] = [path.join(folder, 'plain'), path.join(folder, 'sealed')];
    const { takenAt, installation } = await dumpDatabase(directConfig, plain, RELEASE, signal);
    await encryptFile(plain, sealed, keysOf(settings), signal);
    const at = new Date(takenAt);
    const copy = {
      name: nameOfCopy(installation.id, at),
      installationId: installation.id,
      takenAt: at,
      bytes: (await stat(sealed)).size,
    };
    await store.put(copy.name, sealed);
    await db
      .insertInto('installation_copy')
      .values({ name: copy.name, taken_at: at, bytes: copy.bytes })
      // Two within a second: the later one has overwritten the other.
      .onConflict((conflict) => conflict.column('name').doUpdateSet({ bytes: copy.bytes, checked_at: null }))
      .execute();
    return copy;
  });
}

/** Writes the backup that a copy has into a file, for `quarterdeck restore`. The file must not be there yet. */
export async function fetchCopy(
  { settings, signal }: Pick<CopySource, 'settings' | 'signal'>,
  store: CopyStore,
  name: string,
  file: string,
): Promise<void> {
  await inFolder(settings, async (folder) => {
    const sealed = path.join(folder, 'sealed');
    await store.fetch(name, sealed);
    await decryptFile(sealed, file, keysOf(settings), signal);
  });
}

/** Restores a copy into a scratch database, which shows that it is whole and can be read. Records the outcome, and throws if it failed. */
export async function checkCopy(source: CopySource, store: CopyStore, name: string): Promise<Manifest> {
  const record = (check_error: string | null) =>
    source.db
      .updateTable('installation_copy')
      .set({ checked_at: new Date(), check_error })
      .where('name', '=', name)
      .execute();
  try {
    const manifest = await inFolder(source.settings, async (folder) => {
      const file = path.join(folder, 'plain');
      await fetchCopy(source, store, name, file);
      return withScratchDatabase(source.directConfig, (config) =>
        restoreDatabase(config, file, {
          vaultKeys: keysOf(source.settings),
          finish: async () => undefined,
          signal: source.signal,
        }),
      );
    });
    await record(null);
    return manifest;
  } catch (error) {
    if (!source.signal.aborted) await record((error as Error).message);
    throw error;
  }
}

/**
 * Removes copies of this installation that are older than the settings say, and uploads that killed processes have left. Forgets what is
 * recorded of copies that are gone. A copy that the store keeps holds up no other one: its error is thrown at the end.
 */
export async function removeOldCopies(
  { settings, db }: CopySource,
  store: CopyStore,
  installationId: string,
  now: Date,
): Promise<StoredCopy[]> {
  const own = (await store.list()).filter((copy) => copy.installationId === installationId);
  const end = now.getTime() - settings.copyDays * DAY_MS;
  const old = own.slice(ALWAYS_KEPT).filter(({ takenAt }) => takenAt.getTime() < end);
  const refusals: unknown[] = [];
  const removed: StoredCopy[] = [];
  for (const copy of old)
    await store.remove(copy.name).then(
      () => removed.push(copy),
      (error: unknown) => refusals.push(error),
    );
  const kept = own.filter((copy) => !removed.includes(copy)).map(({ name }) => name);
  await db
    .deleteFrom('installation_copy')
    .where('name', 'not in', kept.length > 0 ? kept : [''])
    .execute();
  await store.endAbandonedUploads(installationId, new Date(now.getTime() - DAY_MS));
  if (refusals.length > 0) throw refusals[0];
  return removed;
}
