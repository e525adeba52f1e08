import type { Context } from '#platform/context.ts';
import { deleteUnnamedVersions, markSuperseded } from '#services/capabilities/service/variables/secret-queries.ts';

/**
 * Milliseconds that a superseded version stays although nothing names it. A request that froze it may not have committed its snapshot yet;
 * requests take seconds.
 */
const GRACE_MS = 60 * 60 * 1000;

/**
 * Removes values of secrets that nothing needs any more: neither a variable nor a kept snapshot, which a rollback would deploy (docs/contributing/engine.md,
 * *Snapshot, resolution, plan*). Answers how many went. For the whole installation.
 */
export async function removeUnusedSecretVersions(context: Context): Promise<number> {
  const now = context.clock.now();
  await markSuperseded(context.db, now);
  return deleteUnnamedVersions(context.db, new Date(now.getTime() - GRACE_MS));
}
