import { Gauge, type Registry } from 'prom-client';
import type { Database } from '#platform/database/index.ts';
import type { RecurringTask } from '#platform/work/schedule.ts';
import { listPresent, removeOldMetrics, type Intervals } from '#services/metrics/queries.ts';
import { labelsOf, SERVICE_METRICS } from '#services/metrics/series.ts';

export { MetricSampler } from '#services/metrics/sampler.ts';
export { readServiceSeries } from '#services/metrics/series.ts';

/** Recurring tasks of the metrics of services. */
export const METRIC_TASKS: RecurringTask[] = [
  { name: 'old-service-metrics', everySeconds: 600, run: ({ db }, signal) => removeOldMetrics(db, signal) },
];

const LABELS = [
  'service_id',
  'service',
  'kind',
  'environment_id',
  'environment',
  'project_id',
  'project',
  'cluster_id',
];

/** Registers the metrics of services for Prometheus; every process shows all of them. Those of one table share one look at it. */
export function registerServiceGauges(registry: Registry, db: Database): void {
  const reading: Partial<Record<keyof Intervals, ReturnType<typeof listPresent>>> = {};
  const read = (source: keyof Intervals) =>
    (reading[source] ??= listPresent(db, source).finally(() => delete reading[source]));
  for (const [name, { help, source, parts }] of Object.entries(SERVICE_METRICS))
    new Gauge({
      name,
      help,
      labelNames: [...LABELS, ...Object.keys(parts[0]!.labels)],
      registers: [registry],
      async collect() {
        const present = await read(source);
        this.reset();
        for (const one of present)
          for (const { labels, valueOf } of parts) {
            const value = valueOf(one);
            if (value !== null) this.set({ ...labelsOf(one), ...labels }, value);
          }
      },
    });
}
