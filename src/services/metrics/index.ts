import { Gauge, type Registry } from 'prom-client';
import type { Database } from '#platform/database/index.ts';
import type { RecurringTask } from '#platform/work/schedule.ts';
import { listPresent, removeOldMetrics } from '#services/metrics/queries.ts';
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

/** Registers the metrics of services for Prometheus; every process shows all of them. They share one look at the database. */
export function registerServiceGauges(registry: Registry, db: Database): void {
  let reading: ReturnType<typeof listPresent> | undefined;
  const read = () => (reading ??= listPresent(db).finally(() => (reading = undefined)));
  for (const [name, { help, valueOf }] of Object.entries(SERVICE_METRICS))
    new Gauge({
      name,
      help,
      labelNames: LABELS,
      registers: [registry],
      async collect() {
        const present = await read();
        this.reset();
        for (const one of present) {
          const value = valueOf(one);
          if (value !== null) this.set(labelsOf(one), value);
        }
      },
    });
}
