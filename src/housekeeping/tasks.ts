import {
  forgetNodes,
  thinSnapshots,
  trimClusterWork,
  trimDeployments,
  trimExecutions,
  trimLogs,
  trimReleases,
  trimTombstones,
} from '#housekeeping/retention.ts';
import { noticeNodes } from '#platform/installation/loss.ts';
import type { RecurringTask } from '#platform/work/schedule.ts';

const HOUR = 3600;

/**
 * Recurring tasks that remove old rows according to the settings. Resources outside the database are removed through the tombstones that
 * these tasks write. Nodes are noticed to be lost before they are forgotten.
 */
export const RETENTION_TASKS: RecurringTask[] = [
  {
    name: 'old-releases',
    everySeconds: HOUR,
    run: async ({ db, settings }) => {
      await trimReleases(db, { kept: settings.keptReleases, days: settings.releaseRetentionDays });
      await thinSnapshots(db);
    },
  },
  {
    name: 'old-deployments',
    everySeconds: HOUR,
    run: async ({ db, settings }, signal) => {
      const limits = { kept: settings.keptDeployments, days: settings.deploymentRetentionDays };
      await trimDeployments(db, limits, signal);
      await trimClusterWork(db, settings.deploymentRetentionDays, signal);
    },
  },
  {
    name: 'old-executions',
    everySeconds: HOUR,
    run: ({ db, settings }, signal) => {
      const { keptDeployments: kept, deploymentRetentionDays: days, logRetentionDays: logDays } = settings;
      return trimExecutions(db, { kept, days, logDays }, signal);
    },
  },
  {
    name: 'old-logs',
    everySeconds: HOUR,
    run: ({ db, settings }, signal) =>
      trimLogs(db, { days: settings.logRetentionDays, megabytes: settings.logLimitMb }, signal),
  },
  { name: 'lost-nodes', everySeconds: 15, run: (platform) => noticeNodes(platform) },
  {
    name: 'forgotten-nodes',
    everySeconds: HOUR,
    run: async ({ db, log }) => {
      for (const nodeId of await forgetNodes(db)) log.info({ nodeId }, 'a lost node without clusters is forgotten');
    },
  },
  {
    name: 'old-tombstones',
    everySeconds: 24 * HOUR,
    run: async ({ db, log }) => {
      const lost = await trimTombstones(db);
      if (lost > 0) log.warn({ lost }, 'what lay on machines that have not been seen for 90 days is given up');
    },
  },
];
