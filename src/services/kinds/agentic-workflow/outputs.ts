import type { Platform } from '#platform/context.ts';
import { sql } from '#platform/database/index.ts';
import { createHttpClient } from '#platform/http-client/index.ts';
import type { RecurringTask } from '#platform/work/schedule.ts';
import { outputPlace, type OutputCall } from '#services/kinds/agentic-workflow/queries.ts';

const BATCH = 20;
const MOST_ATTEMPTS = 8;

/**
 * Posts the outputs that are due, each at least once. Taking an output moves its next attempt, so that no two processes send it at the same
 * time. An output is dropped after eight attempts, which take about ten hours.
 */
async function sendOutputs({ db, vault, settings, log }: Platform, signal: AbortSignal): Promise<void> {
  const http = createHttpClient({ allowedPrivateAddresses: settings.allowedPrivateAddresses });
  const due = await db
    .updateTable('agentic_output')
    .set({ attempts: sql`attempts + 1`, next_at: sql`now() + interval '30 seconds' * power(4, least(attempts, 6))` })
    .where('id', 'in', (from) =>
      from
        .selectFrom('agentic_output')
        .select('id')
        .where('next_at', '<=', sql<Date>`now()`)
        .orderBy('next_at')
        .limit(BATCH)
        .forUpdate()
        .skipLocked(),
    )
    .returning(['id', 'organization_id', 'call', 'attempts'])
    .execute();
  for (const { id, organization_id, call: sealed, attempts } of due) {
    signal.throwIfAborted();
    const call = JSON.parse(await vault.open(db, organization_id, outputPlace(id), sealed)) as OutputCall;
    const headers = Object.fromEntries(call.headers.map(({ name, value }) => [name.toLowerCase(), value]));
    const failure = await http
      .request(call.url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers, 'webhook-id': id },
        body: call.body,
      })
      .then(({ status }) => (status >= 200 && status < 300 ? null : `it answered ${status}`))
      .catch((error: Error) => error.message);
    if (failure !== null) log.warn({ outputId: id, attempts, failure }, 'an output of an agent could not be posted');
    if (failure === null || attempts >= MOST_ATTEMPTS)
      await db
        .deleteFrom('agentic_output')
        .where('organization_id', '=', organization_id)
        .where('id', '=', id)
        .execute();
  }
}

/** Recurring tasks of agentic workflows. */
export const AGENTIC_TASKS: RecurringTask[] = [
  { name: 'agentic-outputs', everySeconds: 5, run: sendOutputs },
  {
    name: 'old-agentic-runs',
    everySeconds: 3600,
    run: async ({ db }) =>
      void (await db
        .deleteFrom('agentic_run')
        .where('created_at', '<', sql<Date>`now() - interval '32 days'`)
        .execute()),
  },
];
