import type pg from 'pg';
import {
  checkCopy,
  DAY_MS,
  DEADLINE_SECONDS,
  makeCopy,
  removeAbandonedCopies,
  removeOldCopies,
  type CopySource,
} from '#platform/copies/copies.ts';
import { CopyStore } from '#platform/copies/store.ts';
import type { Settings } from '#platform/settings/index.ts';
import type { RecurringTask } from '#platform/work/schedule.ts';

const HOUR_MS = 3_600_000;
/** Seconds between two looks whether a copy is due: a store that was away is asked again with the next one. */
const LOOK_SECONDS = 600;

/**
 * Returns the task that sends copies of the installation to the store of the settings. Without a store there is none. It removes old copies
 * and checks a new one from time to time. Each run begins anew, so that it may be broken off anywhere.
 */
export function copyTasks({ copiesUrl }: Pick<Settings, 'copiesUrl'>, directConfig: pg.ClientConfig): RecurringTask[] {
  if (!copiesUrl) return [];
  return [
    {
      name: 'installation-copies',
      everySeconds: LOOK_SECONDS,
      deadlineSeconds: DEADLINE_SECONDS,
      run: async ({ db, settings, clock }, signal) => {
        const source: CopySource = { settings, db, directConfig, signal };
        await removeAbandonedCopies(settings);
        if (!(await isCopyDue(source, clock.now()))) return;
        const store = await CopyStore.open(settings, signal);
        const { name, installationId } = await makeCopy(source, store);
        // Before anything is removed: older copies may be better than this one.
        if (await isCheckDue(source, clock.now())) await checkCopy(source, store, name);
        await removeOldCopies(source, store, installationId, clock.now());
      },
    },
  ];
}

async function isCopyDue({ db, settings }: CopySource, now: Date): Promise<boolean> {
  const since = new Date(now.getTime() - settings.copyHours * HOUR_MS);
  const recent = await db
    .selectFrom('installation_copy')
    .select('name')
    .where('taken_at', '>', since)
    .executeTakeFirst();
  return recent === undefined;
}

/** Returns whether no copy was found good for as many days as the settings say. */
async function isCheckDue({ db, settings }: CopySource, now: Date): Promise<boolean> {
  if (settings.copyCheckDays === 0) return false;
  const since = new Date(now.getTime() - settings.copyCheckDays * DAY_MS);
  const good = await db
    .selectFrom('installation_copy')
    .select('name')
    .where('checked_at', '>', since)
    .where('check_error', 'is', null)
    .executeTakeFirst();
  return good === undefined;
}
