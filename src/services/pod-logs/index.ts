import type { Platform } from '#platform/context.ts';
import type { RecurringTask } from '#platform/work/schedule.ts';
import { keepPodLog, listPodLogs, readPodLog, removePodLogs, trimPodLogs } from '#services/pod-logs/queries.ts';
import type { FormerLogStore, KeptLog } from '#runtimes/former-log-store.ts';

const HOUR_MS = 3_600_000;

/** Returns the earliest end of pods whose logs are kept. */
const earliestEnd = ({ clock, settings }: Pick<Platform, 'clock' | 'settings'>): Date =>
  new Date(clock.now().getTime() - settings.formerLogHours * HOUR_MS);

/** Removes the logs of pods whose time is over. */
export const POD_LOG_TASKS: RecurringTask[] = [
  {
    name: 'old-pod-logs',
    everySeconds: 3600,
    run: async (platform, signal) => void (await removePodLogs(platform.db, earliestEnd(platform), signal)),
  },
];

/** Keeps the logs of a cluster's ended pods in the database; undefined where the settings keep none. */
export function createPodLogs(platform: Platform, clusterId: string): FormerLogStore | undefined {
  const { db, settings, log } = platform;
  if (settings.formerLogHours === 0) return undefined;
  const keptOf = (serviceId: string, row: Awaited<ReturnType<typeof listPodLogs>>[number]): KeptLog => ({
    instance: row.pod_name,
    endedAt: row.ended_at.getTime(),
    read: async () => (await readPodLog(db, serviceId, row.pod_uid))?.content ?? null,
    isDamaged: async (error) =>
      log.warn({ err: error, serviceId, pod: row.pod_name }, 'the kept log of a pod cannot be unpacked'),
  });
  return {
    keep: async (
      { serviceId: service_id, key: pod_uid, name: pod_name, endedAt: ended_at, environmentId },
      content,
    ) => {
      if (ended_at < earliestEnd(platform)) return;
      await keepPodLog(db, { service_id, pod_uid, pod_name, ended_at, content }, { clusterId, environmentId });
      await trimPodLogs(db, service_id, settings.podLogLimitMb * 2 ** 20);
    },
    list: async (serviceId) => {
      const rows = await listPodLogs(db, serviceId, earliestEnd(platform));
      return rows.map((row) => keptOf(serviceId, row));
    },
  };
}
