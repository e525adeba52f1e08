import { inTransaction, systemContext, type Platform } from '#platform/context.ts';
import type { RecurringTask } from '#platform/work/schedule.ts';
import { addBackup } from '#services/kinds/database/backups/new-backup.ts';
import { expireBackups, listDueDaily } from '#services/kinds/database/backups/queries.ts';
import { findServiceById, lockService } from '#services/service/queries.ts';

/** Requests the daily backup of each managed database that has none of the last day. */
export async function requestDailyBackups(platform: Platform, signal: AbortSignal): Promise<void> {
  for (const { id, organization_id } of await listDueDaily(platform.db)) {
    signal.throwIfAborted();
    await inTransaction(systemContext(platform), async (context) => {
      await lockService(context.db, [organization_id], id);
      const row = await findServiceById(context.db, [organization_id], id);
      if (!row || row.deleting) return;
      const name = `Daily backup of ${context.clock.now().toISOString().slice(0, 10)}`;
      await addBackup(context, row, { name, message: '', origin: 'DAILY' });
    });
  }
}

/** Recurring tasks of databases. */
export const DATABASE_TASKS: RecurringTask[] = [
  { name: 'daily-database-backups', everySeconds: 600, run: requestDailyBackups },
  { name: 'old-database-backups', everySeconds: 600, run: async ({ db }) => void (await expireBackups(db)) },
];
