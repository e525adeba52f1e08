import { inTransaction, systemContext, type Context, type Platform } from '#platform/context.ts';
import { sql } from '#platform/database/index.ts';
import { environmentTarget, isExpired, listExpired, type ExpiredEnvironment } from '#resources/environment/index.ts';
import { deleteEnvironment } from '#services/capabilities/environment/actions/delete.ts';

/** Environments that one run deletes at most. */
const MOST_AT_ONCE = 1_000;
/** Milliseconds that the deletion of one environment waits for a lock, and that each of its statements takes. */
const LIMITS = { lock_timeout: 2_000, statement_timeout: 10_000 };

/**
 * Deletes environments whose time is over (docs/contributing/rules.md, *Environment*, `expires_at`), those of the organizations in turns. One that
 * cannot be deleted now is tried again at the next run, and keeps no other one.
 */
export async function deleteExpiredEnvironments(platform: Platform, signal: AbortSignal): Promise<void> {
  for (const expired of await listExpired(platform.db, MOST_AT_ONCE)) {
    signal.throwIfAborted();
    try {
      await inTransaction(systemContext(platform), (context) => deleteExpired(context, expired));
    } catch (error) {
      platform.log.warn(
        { err: error, organizationId: expired.organization_id, environmentId: expired.id },
        'cannot delete an environment whose time is over; it is tried again',
      );
    }
  }
}

async function deleteExpired(context: Context, { id, organization_id }: ExpiredEnvironment): Promise<void> {
  const { db } = context;
  for (const [name, ms] of Object.entries(LIMITS))
    await sql`select set_config(${name}, ${String(ms)}, true)`.execute(db);
  const environment = await environmentTarget.find(db, id, [organization_id], { lock: true });
  // Since it was listed, a push to its pull request may have put its end off.
  if (!environment || !(await isExpired(db, environment, id))) return;
  await deleteEnvironment(context, environment, () => undefined, false);
}
