import { sql, type Database } from '#platform/database/index.ts';

/**
 * Condition on a row of the installation that the database is on another timeline than the installation knows: a standby took the place of
 * its primary (docs/decisions/0109-a-failover-raises-the-epoch.md).
 */
const HAS_MOVED = sql<boolean>`current_timeline() is distinct from coalesce(installation.timeline, '') and current_timeline() is not null`;

/** Condition that no process has followed the database to its present timeline yet. */
export const FAILED_OVER = sql<boolean>`exists (select from installation where ${HAS_MOVED})`;

/** Expression for the present epoch. */
export const EPOCH = sql<number>`(select epoch from installation)`;

/**
 * Follows the database to a standby that was promoted: raises the installation's epoch, once for all processes. Returns the new epoch; null
 * where another process has raised it, or nothing has moved.
 */
export async function followFailover(db: Database): Promise<number | null> {
  const { rows } = await sql<{ epoch: number }>`
    update installation set epoch = epoch + 1, timeline = current_timeline() where ${HAS_MOVED} returning epoch`.execute(
    db,
  );
  return rows[0]?.epoch ?? null;
}
