import { sql, type Database } from '#platform/database/index.ts';
import { FAILED_OVER, followFailover } from '#platform/installation/failover.ts';

/**
 * Begins a new line of transactions where the events are of another one: the installation's epoch has moved (a restore and a failover raise it), or they
 * carry numbers of transactions that this server has yet to give out (the database was copied from another server). Every cursor given out
 * before leads nowhere then. For every process, before its first stream, and
 * where a page finds it so.
 */
export async function ensureLine(db: Database): Promise<void> {
  await followFailover(db);
  const { rows } = await selectState(db, false);
  if (!rows[0]?.foreign) return;
  await db.transaction().execute(async (inside) => {
    // The table before the row, as the removal of old events takes them: several processes find the end at once.
    await sql`lock table stream_event in access exclusive mode`.execute(inside);
    const { rows: locked } = await selectState(inside, true);
    if (!locked[0]?.foreign) return;
    await sql`truncate stream_event`.execute(inside);
    await sql`update stream_state set line = substr(md5(gen_random_uuid()::text), 1, 12), removed_xid = '0', removed_id = 0,
      epoch = (select epoch from installation)`.execute(inside);
  });
}

/** Condition on `stream_state state` that its line has ended, of which each page asks. */
export const LINE_HAS_ENDED = sql<boolean>`(state.epoch <> (select epoch from installation) or ${FAILED_OVER})`;

const selectState = (db: Database, lock: boolean) =>
  sql<{ foreign: boolean }>`
    select state.epoch <> (select epoch from installation)
      or state.removed_xid >= pg_snapshot_xmax(pg_current_snapshot())
      or exists (select from stream_event where xid >= pg_snapshot_xmax(pg_current_snapshot())) as foreign
    from stream_state state ${lock ? sql`for update` : sql``}`.execute(db);
