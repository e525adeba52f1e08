import { setTimeout as sleep } from 'node:timers/promises';
import type { Database, Scope } from '#platform/database/index.ts';

/** Between looks: short at first, because most of what is waited for is quick. */
const FIRST_POLL_MS = 10;
const LONGEST_POLL_MS = 100;

/** Waits until a deployment has ended, or is gone with its environment, or the time is over (`?wait=`). */
export async function waitForEnd(
  db: Database,
  scope: Scope,
  deploymentId: string,
  seconds: number,
  signal: AbortSignal,
): Promise<void> {
  const end = Date.now() + seconds * 1000;
  for (let pause = FIRST_POLL_MS; Date.now() < end && !signal.aborted; pause = Math.min(pause * 1.5, LONGEST_POLL_MS)) {
    const row = await db
      .selectFrom('deployment')
      .select('status')
      .where('organization_id', '=', scope.organizationId)
      .where('id', '=', deploymentId)
      .executeTakeFirst();
    if (!row || row.status === 'ENDED') return;
    await sleep(pause);
  }
}
