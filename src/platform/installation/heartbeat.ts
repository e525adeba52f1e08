import { hostname } from 'node:os';
import type { Platform } from '#platform/context.ts';
import { sql } from '#platform/database/index.ts';
import { leave } from '#platform/installation/nodes.ts';
import { Repeated } from '#platform/work/repeated.ts';

/** Milliseconds between two signs of life of a process. */
const BEAT_MS = 20_000;

/**
 * Shows that this machine is there, now and for as long as the process runs. Returns what ends it, and removes a machine that `isTemporary`.
 * Resolves after the first sign of life, or when it has failed, which is logged.
 */
export async function startHeartbeat(
  { db, log }: Pick<Platform, 'db' | 'log'>,
  nodeId: string,
  isTemporary = false,
): Promise<() => Promise<void>> {
  const beats = new Repeated(
    async () => {
      // A machine that was forgotten while it was away is made anew.
      await db
        .insertInto('node')
        .values({ id: nodeId, name: hostname(), is_temporary: isTemporary })
        .onConflict((conflict) => conflict.column('id').doUpdateSet({ seen_at: sql`now()` }))
        .execute();
    },
    (error) =>
      log.warn({ err: error }, 'cannot show that this machine is there; others take it for lost after a while'),
  );
  const timer = setInterval(() => void beats.request(), BEAT_MS);
  await beats.request();
  return async () => {
    clearInterval(timer);
    await beats.settled();
    if (isTemporary) await leave(db, nodeId);
  };
}
