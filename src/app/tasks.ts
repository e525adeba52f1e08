import { applyDeploymentRules } from '#app/deployment-rules.ts';
import { RETENTION_TASKS } from '#app/housekeeping/index.ts';
import { watchQueue } from '#deployments/queue/watchdog.ts';
import { inTransaction, systemContext, type Platform } from '#platform/context.ts';
import { sql } from '#platform/database/index.ts';
import { maintainEventPartitions } from '#platform/events/partitions.ts';
import type { RecurringTask } from '#platform/work/schedule.ts';
import { removeOldStreamEvents } from '#delivery/stream/index.ts';
import { expireDeliveries, removeOldDeliveries } from '#delivery/webhooks/index.ts';
import { rewrapOlder } from '#platform/vault/rotation.ts';
import { environmentTarget } from '#resources/environment/index.ts';
import { removeUnusedSecretVersions } from '#services/capabilities/variables/index.ts';
import { CUSTOM_DOMAIN_TASKS } from '#services/capabilities/custom-domains/tasks.ts';
import { DATABASE_TASKS } from '#services/kinds/database/backups/tasks.ts';
import { AGENTIC_TASKS } from '#services/kinds/agentic-workflow/outputs.ts';
import { deleteEnvironment } from '#services/capabilities/actions/delete.ts';

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Everything that recurs in the database. What looks at runtimes stands in watchers.ts. */
export const TASKS: RecurringTask[] = [
  { name: 'audit-event-partitions', everySeconds: DAY, run: maintainEventPartitions },
  {
    name: 'webhook-deliveries',
    everySeconds: HOUR,
    run: async (platform) => {
      await expireDeliveries(platform);
      await removeOldDeliveries(platform);
    },
  },
  {
    name: 'superseded-secrets',
    everySeconds: HOUR,
    run: async (platform) => void (await removeUnusedSecretVersions(systemContext(platform))),
  },
  {
    name: 'stream-events',
    everySeconds: 10 * MINUTE,
    run: async (platform, signal) => void (await removeOldStreamEvents(platform, signal)),
  },
  { name: 'queue-watchdog', everySeconds: 15, run: (platform) => watchQueue(platform) },
  { name: 'environment-expiry', everySeconds: MINUTE, run: deleteExpired },
  { name: 'deployment-rules', everySeconds: 20, run: applyDeploymentRules },
  {
    name: 'short-lived-records',
    everySeconds: HOUR,
    run: async ({ db }) => {
      await db
        .deleteFrom('idempotency_record')
        .where('created_at', '<', sql<Date>`now() - interval '24 hours'`)
        .execute();
      await db
        .deleteFrom('rate_window')
        .where('started_at', '<', sql<Date>`now() - interval '2 hours'`)
        .execute();
      await db
        .deleteFrom('build_report')
        .where('expires_at', '<', sql<Date>`now()`)
        .execute();
    },
  },
  // What an older key seals: after a rotation that was broken off, by a process that knew of none, or a key put in front by hand.
  {
    name: 'older-vault-keys',
    everySeconds: HOUR,
    run: async ({ db, vault }, signal) => void (await rewrapOlder(db, vault, signal)),
  },
  ...CUSTOM_DOMAIN_TASKS,
  ...DATABASE_TASKS,
  ...AGENTIC_TASKS,
  ...RETENTION_TASKS,
];

/** Deletes environments whose time is over (service.md §2.1, `expires_at`). */
async function deleteExpired(platform: Platform, signal: AbortSignal): Promise<void> {
  const expired = await platform.db
    .selectFrom('environment')
    .select(['id', 'organization_id'])
    .where('expires_at', '<=', sql<Date>`now()`)
    .where('deleting', '=', false)
    .execute();
  for (const { id, organization_id } of expired) {
    signal.throwIfAborted();
    await inTransaction(systemContext(platform), async (context) => {
      const environment = await environmentTarget.find(context.db, id, [organization_id], { lock: true });
      if (environment) await deleteEnvironment(context, environment, () => undefined, false);
    });
  }
}
