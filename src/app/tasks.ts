import { applyDeploymentRules } from '#resources/deployment-rule/index.ts';
import { requestAutomatically } from '#services/capabilities/service/actions/request.ts';
import { RETENTION_TASKS } from '#housekeeping/index.ts';
import { watchQueue } from '#deployments/queue/watchdog.ts';
import { removeOldWindows } from '#platform/access/rate-limit.ts';
import { removeOldSignIns } from '#resources/sign-in/index.ts';
import { systemContext } from '#platform/context.ts';
import { maintainEventPartitions } from '#platform/events/partitions.ts';
import { removeOldRecords } from '#platform/http/idempotency.ts';
import type { RecurringTask } from '#platform/work/schedule.ts';
import { removeOldStreamEvents } from '#delivery/stream/index.ts';
import { ALERT_TASKS } from '#delivery/alerts/index.ts';
import { WEBHOOK_TASKS } from '#delivery/webhooks/index.ts';
import { rewrapOlder } from '#platform/vault/rotation.ts';
import { removeUnusedSecretVersions } from '#services/capabilities/variables/index.ts';
import { CUSTOM_DOMAIN_TASKS } from '#services/capabilities/service/custom-domains/tasks.ts';
import { DATABASE_TASKS } from '#services/kinds/database/backups/tasks.ts';
import { METRIC_TASKS } from '#services/metrics/index.ts';
import { POD_LOG_TASKS } from '#services/pod-logs/index.ts';
import { PREVIEW_TASKS } from '#services/previews/index.ts';
import { FOLLOWING_TASKS } from '#services/mount.ts';
import { AGENTIC_TASKS } from '#services/kinds/agentic-workflow/outputs.ts';
import { UPLOAD_TASKS } from '#services/sources/uploads/index.ts';
import { deleteExpiredEnvironments } from '#services/capabilities/environment/actions/expiry.ts';
import { removeExpiredReports } from '#services/capabilities/environment/history/build-report.ts';

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Recurring tasks on the database. Watchers of runtimes are started in `src/app/background.ts`. */
export const TASKS: RecurringTask[] = [
  { name: 'audit-event-partitions', everySeconds: DAY, run: maintainEventPartitions },
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
  { name: 'environment-expiry', everySeconds: MINUTE, run: deleteExpiredEnvironments },
  {
    name: 'deployment-rules',
    everySeconds: 20,
    run: (platform, signal) => applyDeploymentRules(platform, signal, requestAutomatically),
  },
  {
    name: 'short-lived-records',
    everySeconds: HOUR,
    run: async ({ db, clock }) => {
      for (const remove of [removeOldRecords, removeOldWindows, removeExpiredReports]) await remove(db);
      await removeOldSignIns({ db, clock });
    },
  },
  // Seals values of older vault keys with the newest: after an interrupted rotation, a write by a process without it, or a manual change.
  {
    name: 'older-vault-keys',
    everySeconds: HOUR,
    run: async ({ db, vault }, signal) => void (await rewrapOlder(db, vault, signal)),
  },
  ...WEBHOOK_TASKS,
  ...ALERT_TASKS,
  ...CUSTOM_DOMAIN_TASKS,
  ...DATABASE_TASKS,
  ...AGENTIC_TASKS,
  ...FOLLOWING_TASKS,
  ...UPLOAD_TASKS,
  ...PREVIEW_TASKS,
  ...METRIC_TASKS,
  ...POD_LOG_TASKS,
  ...RETENTION_TASKS,
];
