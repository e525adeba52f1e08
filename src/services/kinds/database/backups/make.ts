import { storable } from '#kernel/storable.ts';
import { maskOf } from '#kernel/secrets-mask.ts';
import { RuntimeError, type Handle, type Runtime } from '#runtimes/runtime.ts';
import { ClaimLost } from '#platform/work/index.ts';
import type { Context } from '#platform/context.ts';
import { openCredentials } from '#services/kinds/database/access.ts';
import { removeBackup, writeBackup } from '#services/kinds/database/backups/file.ts';
import { fileOf } from '#services/kinds/database/backups/new-backup.ts';
import { endBackup, type BackupClaim, type BackupRow } from '#services/kinds/database/backups/queries.ts';
import { dumpTo, type Server } from '#services/kinds/database/backups/run.ts';
import { editionOfSpec } from '#services/kinds/database/deploy.ts';
import type { DatabaseSpec } from '#services/kinds/database/spec.ts';

type Parts = Pick<Context, 'db' | 'vault' | 'settings'>;

/** Returns the running server of a database with its credentials. Throws an error for people if none runs. */
export async function serverOf(
  parts: Parts,
  organizationId: string,
  database: { id: string; name: string; spec: unknown; handle: unknown; wanted: string },
  runtime: Runtime,
): Promise<Server> {
  if (database.wanted !== 'running' || !database.handle)
    throw new RuntimeError('failed', `${database.name} is not running: deploy it first.`);
  const spec = database.spec as DatabaseSpec;
  return {
    runtime,
    handle: database.handle as Handle,
    tools: editionOfSpec(spec).backup,
    credentials: await openCredentials(parts, organizationId, database.id, spec.access),
  };
}

/** Makes the file of a backup that is claimed. */
export async function makeFile(parts: Parts, row: BackupRow, server: Server, signal: AbortSignal) {
  const file = await fileOf(parts, row);
  return writeBackup(file, (to) => dumpTo(server, to, signal));
}

/**
 * Ends a backup that could not be made, and removes the files of its attempts. Returns false if another attempt has claimed the backup,
 * whose file stays, or if the backup was deleted.
 */
export async function failBackup({ db, settings }: Parts, row: BackupClaim, error: string): Promise<boolean> {
  try {
    await endBackup(db, row, { error });
  } catch (lost) {
    if (lost instanceof ClaimLost) return false;
    throw lost;
  }
  await removeBackup({ dataDir: settings.dataDir, organizationId: row.organization_id, backupId: row.id }, false);
  return true;
}

/** Returns the message of an error for people, without the passwords that tools may repeat. */
export function reasonOf(error: unknown, secrets: string[]): string {
  const text = error instanceof Error ? error.message : String(error);
  return storable(maskOf(secrets)(text).slice(0, 4000));
}
