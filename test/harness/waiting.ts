import { sql, type Database } from '#platform/database/index.ts';

/** How many of the database's sessions wait for a lock that another one holds. */
export async function sessionsThatWait(db: Database): Promise<number> {
  const { rows } = await sql<{ n: number }>`select count(*)::int as n from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`.execute(db);
  return rows[0]!.n;
}
