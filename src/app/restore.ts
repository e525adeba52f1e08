import { statSync } from 'node:fs';
import { openServer, vaultKeyFile } from '#app/install.ts';
import { dumpDatabase, restoreDatabase, type Manifest } from '#platform/backup/index.ts';
import { sql, type Transaction } from '#platform/database/index.ts';
import { enterReadOnly } from '#platform/installation/index.ts';
import type { Settings } from '#platform/settings/index.ts';
import { readVaultKeys } from '#platform/vault/key.ts';
import { RELEASE } from '#app/release.ts';

type Progress = (text: string) => void;

/** Writes a backup of the installation that the settings name into the file. Nothing is migrated, and a service that runs goes on. */
export async function backUp(
  settings: Settings,
  file: string,
  progress: Progress,
): Promise<{ manifest: Manifest; bytes: number }> {
  const server = await openServer(settings, progress);
  try {
    progress('Backing up');
    const manifest = await dumpDatabase(server.directConfig, file, RELEASE);
    return { manifest, bytes: statSync(file).size };
  } finally {
    await server.close();
  }
}

/** Restores a backup into the empty database that the settings name. The installation is read-only afterwards, under a higher epoch. */
export async function restore(settings: Settings, file: string, progress: Progress): Promise<Manifest> {
  // Never made here: a new key would read nothing of the backup.
  const vaultKeys = readVaultKeys(vaultKeyFile(settings), false);
  const server = await openServer(settings, progress);
  try {
    return await restoreDatabase(server.directConfig, file, { vaultKeys, progress, finish: makeReadOnly });
  } finally {
    await server.close();
  }
}

async function makeReadOnly(db: Transaction, manifest: Manifest): Promise<void> {
  await db
    .updateTable('service')
    .set({ restored_at: sql`now()` })
    .where('wanted', '=', 'running')
    .execute();
  await enterReadOnly(db, new Date(manifest.takenAt));
}
