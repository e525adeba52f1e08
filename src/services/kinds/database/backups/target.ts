import type { Location } from '#platform/access/principal.ts';
import type { Target } from '#platform/http/route.ts';
import { findBackup, lockBackup, type BackupPlace, type BackupRow } from '#services/kinds/database/backups/queries.ts';

export type BackupTarget = BackupRow & BackupLocation;

type BackupLocation = Location & { projectId: string; environmentId: string; mode: string };

/** Returns the location of a backup's database, which may be gone: permissions are checked there. */
export const locationOf = (row: BackupPlace): BackupLocation => ({
  organizationId: row.organization_id,
  projectId: row.project_id,
  environmentId: row.environment_id,
  mode: row.environment_mode,
});

/** Returns a backup with its place. */
export const located = (row: BackupRow): BackupTarget => ({ ...row, ...locationOf(row) });

/** Loads a backup of a path, also of a database that is gone. In writes its row is locked. */
export const backupTarget: Target<BackupTarget> = {
  name: 'Backup',
  param: 'backupId',
  find: async (db, id, organizationIds, { lock }) => {
    if (lock && !(await lockBackup(db, organizationIds, id))) return undefined;
    const row = await findBackup(db, organizationIds, id);
    return row && located(row);
  },
};
