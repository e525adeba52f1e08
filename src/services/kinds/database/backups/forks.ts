import { conflict } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import { isOfFork } from '#resources/environment/index.ts';
import type { BackupRow } from '#services/kinds/database/backups/queries.ts';
import type { ServiceRow } from '#services/service/queries.ts';

/**
 * Throws 409 for a restore into or out of the preview of a fork: the code of a stranger would read real data, or functions and triggers of a
 * stranger would run elsewhere. A restore within one preview is allowed.
 */
export async function refuseForkRestore(
  { db }: Pick<Context, 'db'>,
  database: Pick<ServiceRow, 'organization_id' | 'environment_id' | 'name'>,
  backup: Pick<BackupRow, 'environment_id' | 'environment_name' | 'of_fork'>,
): Promise<void> {
  if (backup.environment_id === database.environment_id) return;
  if (backup.of_fork)
    throw conflict(
      `This backup is of ${backup.environment_name}, the preview of a pull request from a fork: it is restored into databases of that preview only.`,
    );
  if (await isOfFork(db, { organizationId: database.organization_id }, database.environment_id))
    throw conflict(
      `${database.name} is in the preview of a pull request from a fork: only backups of that preview are restored into it.`,
    );
}
