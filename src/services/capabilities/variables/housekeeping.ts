import type { Context } from '#platform/context.ts';
import { deleteUnnamedVersions, markSuperseded } from '#services/capabilities/variables/secret-queries.ts';

/**
 * Milliseconds that a superseded version stays although nothing names it. A request that froze it may not have committed its snapshot yet;
 * requests take seconds.
 */
const GRACE_MS = 60 * 60 * 1000;

/**
 * Removes the secret versions that neither a variable nor a kept snapshot names, in the whole installation. A rollback deploys kept
 * snapshots (docs/contributing/engine.md, *Snapshot, resolution, plan*). Returns the number of removed versions.
 */
export async function removeUnusedSecretVersions(context: Context): Promise<number> {
  const now = context.clock.now();
  await markSuperseded(context.db, now);
  return deleteUnnamedVersions(context.db, new Date(now.getTime() - GRACE_MS));
}
