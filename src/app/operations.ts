import { collectDefaultMetrics, Registry } from 'prom-client';
import { readWork } from '#app/work-reports.ts';
import { registerNodeGauges } from '#clusters/node-gauges.ts';
import { registerQueueGauges } from '#deployments/queue/gauges.ts';
import type { Database } from '#platform/database/index.ts';
import type { Settings } from '#platform/settings/index.ts';
import { registerServiceGauges } from '#services/metrics/index.ts';
import { registerStoreGauges } from '#services/kinds/database/backups/elsewhere.ts';
import { registerRequestMetrics, type RequestMetrics } from '#platform/telemetry/request-metrics.ts';
import { watchWork } from '#platform/work/gauges.ts';

/** Metrics of this process, as Prometheus reads them. */
export interface Metrics extends RequestMetrics {
  registry: Registry;
}

export function createMetrics(db: Database, settings: Pick<Settings, 'copiesUrl'>): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  registerQueueGauges(registry, db);
  registerNodeGauges(registry, db);
  registerServiceGauges(registry, db);
  registerStoreGauges(registry, db, settings);
  watchWork(registry, () => readWork(db));
  return { registry, ...registerRequestMetrics(registry) };
}
