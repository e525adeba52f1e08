import { collectDefaultMetrics, Registry } from 'prom-client';
import { readWork } from '#app/work-reports.ts';
import { registerNodeGauges } from '#clusters/node-gauges.ts';
import { registerQueueGauges } from '#deployments/queue/gauges.ts';
import { registerCopyGauges } from '#platform/copies/index.ts';
import type { Database } from '#platform/database/index.ts';
import { registerRequestMetrics, type RequestMetrics } from '#platform/telemetry/request-metrics.ts';
import { watchWork } from '#platform/work/gauges.ts';

/** Metrics of this process, as Prometheus reads them. */
export interface Metrics extends RequestMetrics {
  registry: Registry;
}

export function createMetrics(db: Database): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  registerQueueGauges(registry, db);
  registerNodeGauges(registry, db);
  registerCopyGauges(registry, db);
  watchWork(registry, () => readWork(db));
  return { registry, ...registerRequestMetrics(registry) };
}
