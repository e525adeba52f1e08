import type { Database, sql } from '#platform/database/index.ts';

/**
 * Repeats work on at most `limit` rows until less are left; returns how many there were. One statement for all of them would hold its
 * locks, and delay the readers of the event stream, for as long as it takes. Throws the reason of the signal between two batches.
 */
export async function inBatches(
  limit: number,
  signal: AbortSignal | undefined,
  batch: () => Promise<number>,
): Promise<number> {
  for (let total = 0; ;) {
    signal?.throwIfAborted();
    const done = await batch();
    total += done;
    if (done < limit) return total;
  }
}

/** Returns the number of rows that a statement changed or removed. */
export const countChanged = async (db: Database, statement: ReturnType<typeof sql>): Promise<number> =>
  Number((await statement.execute(db)).numAffectedRows ?? 0);
