import { sql, type Database } from '#platform/database/index.ts';

/** Returns how many sessions of the database wait for a lock that another session holds. */
export async function sessionsThatWait(db: Database): Promise<number> {
  const { rows } = await sql<{ n: number }>`select count(*)::int as n from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`.execute(db);
  return rows[0]!.n;
}

/** Returns whether a session, by its process id, waits for a lock that another session holds. */
export async function waitsForLock(db: Database, pid: number): Promise<boolean> {
  const { rows } = await sql<{ waits: boolean }>`select cardinality(pg_blocking_pids(${pid})) > 0 as waits`.execute(db);
  return rows[0]!.waits;
}
