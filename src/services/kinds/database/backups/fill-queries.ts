import type { Insertable } from 'kysely';
import { sql, type Database, type DB, type Scope } from '#platform/database/index.ts';
import type { BackupRow } from '#services/kinds/database/backups/queries.ts';

export const insertFill = (db: Database, fill: Insertable<DB['database_fill']>) =>
  db.insertInto('database_fill').values(fill).execute();

/** Finds what a database is to be filled with; undefined where nothing is, or is any more. */
export const findOpenFill = (db: Database, scope: Scope, databaseId: string) =>
  db
    .selectFrom('database_fill')
    .selectAll()
    .where('organization_id', '=', scope.organizationId)
    .where('database_id', '=', databaseId)
    .where('ended_at', 'is', null)
    .executeTakeFirst();

export type FillRow = NonNullable<Awaited<ReturnType<typeof findOpenFill>>>;

/** Records a step of a fill. */
export const recordFill = (db: Database, fill: FillRow, step: 'loaded_at' | 'ended_at') =>
  db
    .updateTable('database_fill')
    .set({ [step]: sql`now()` })
    .where('organization_id', '=', fill.organization_id)
    .where('database_id', '=', fill.database_id)
    .execute();

/** Names the backup that a fill waits for now; null for the last one that there is. */
export const renewBackup = (db: Database, fill: FillRow, backupId: string | null) =>
  db
    .updateTable('database_fill')
    .set({ backup_id: backupId })
    .where('organization_id', '=', fill.organization_id)
    .where('database_id', '=', fill.database_id)
    .execute();

/** Finds the newest backup of a database that was made; undefined if there is none. */
export const findLastBackup = (db: Database, scope: Scope, databaseId: string): Promise<BackupRow | undefined> =>
  db
    .selectFrom('database_backup')
    .selectAll()
    .where('organization_id', '=', scope.organizationId)
    .where('database_id', '=', databaseId)
    .where('status', '=', 'READY')
    .orderBy('created_at', 'desc')
    .limit(1)
    .executeTakeFirst();
