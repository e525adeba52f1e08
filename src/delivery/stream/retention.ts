import type { Platform } from '#platform/context.ts';
import { inBatches } from '#platform/database/batches.ts';
import { sql, type Database } from '#platform/database/index.ts';

const AT_ONCE = 5_000;
const HOUR_MS = 3_600_000;

/**
 * Removes events of streams that are older than the retention, oldest first, and notes the position in the same statement: a stream that
 * has not come that far is told. Returns the number of removed events. For the scheduler.
 */
export function removeOldStreamEvents({ db, clock, settings }: Platform, signal?: AbortSignal): Promise<number> {
  const before = new Date(clock.now().getTime() - settings.streamRetentionHours * HOUR_MS);
  return inBatches(AT_ONCE, signal, () => removeBefore(db, before));
}

/** Removes from the beginning, up to the first event that is not old: what is kept has no holes. */
async function removeBefore(db: Database, before: Date): Promise<number> {
  const { rows } = await sql<{ removed: number }>`
    with first as (
      select xid, id, at from stream_event where xid < pg_snapshot_xmin(pg_current_snapshot()) order by xid, id limit ${AT_ONCE}
    ), aged as (
      select xid, id, bool_and(at < ${before}) over (order by xid, id) as old from first
    ), gone as (
      delete from stream_event event using aged where aged.old and event.xid = aged.xid and event.id = aged.id
      returning event.xid, event.id
    ), last as (select xid, id from gone order by xid desc, id desc limit 1)
    update stream_state set removed_xid = last.xid, removed_id = last.id from last
    returning (select count(*) from gone) as removed`.execute(db);
  return rows[0]?.removed ?? 0;
}
