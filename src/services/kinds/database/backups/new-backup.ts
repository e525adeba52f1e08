import { randomBytes } from 'node:crypto';
import { newId } from '#kernel/ids.ts';
import type { Context } from '#platform/context.ts';
import { isOfFork } from '#resources/environment/index.ts';
import { editionOfSpec } from '#services/kinds/database/deploy.ts';
import { insertBackup, type BackupRow } from '#services/kinds/database/backups/queries.ts';
import type { DatabaseSpec } from '#services/kinds/database/spec.ts';
import type { ServiceRow } from '#services/service/queries.ts';

const DAY_MS = 24 * 3_600_000;

/** Vault name of the key of a backup's file. */
const keyPlace = (id: string): string => `database_backup/${id}/key`;

export interface NewBackup {
  name: string;
  message: string;
  origin: 'MANUAL' | 'DAILY' | 'BEFORE_DELETE' | 'BEFORE_RESTORE' | 'FOR_COPY';
  /** Set when the process that adds the backup also makes it: the row is claimed from its first moment. */
  claim?: { token: string; leaseUntil: Date; nodeId: string; deploymentId?: string };
}

/** Adds a backup that is to be made. A requested backup stays until it is deleted, the others for the number of days in the settings. */
export async function addBackup(context: Context, database: ServiceRow, given: NewBackup): Promise<string> {
  const id = newId();
  const spec = database.spec as DatabaseSpec;
  const { format, extension, leavesOut } = editionOfSpec(spec).backup;
  const { claim } = given;
  const key = randomBytes(32).toString('base64');
  const keptMs = context.settings.databaseBackupDays * DAY_MS;
  await insertBackup(context.db, {
    id,
    organization_id: database.organization_id,
    database_id: database.id,
    database_name: database.name,
    project_id: database.project_id,
    project_name: database.project_name,
    environment_id: database.environment_id,
    environment_name: database.environment_name,
    environment_mode: database.environment_mode,
    of_fork: await isOfFork(context.db, { organizationId: database.organization_id }, database.environment_id),
    name: given.name,
    message: given.message,
    origin: given.origin,
    type: spec.type,
    version: spec.version,
    format,
    extension,
    leaves_out: leavesOut,
    key: await context.vault.seal(context.db, database.organization_id, keyPlace(id), key),
    requested_by: context.actor.userId,
    requested_by_name: context.actor.name,
    expires_at: given.origin === 'MANUAL' ? null : new Date(context.clock.now().getTime() + keptMs),
    ...(claim
      ? {
          status: 'RUNNING',
          claim_token: claim.token,
          lease_until: claim.leaseUntil,
          node_id: claim.nodeId,
          deployment_id: claim.deploymentId ?? null,
          attempts: 1,
          started_at: context.clock.now(),
        }
      : {}),
  });
  return id;
}

/** The file of a backup, with its key. */
export async function fileOf(context: Pick<Context, 'db' | 'vault' | 'settings'>, row: BackupRow) {
  const key = await context.vault.open(context.db, row.organization_id, keyPlace(row.id), row.key);
  return {
    dataDir: context.settings.dataDir,
    organizationId: row.organization_id,
    backupId: row.id,
    key: Buffer.from(key, 'base64'),
  };
}
