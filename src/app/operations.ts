import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { countByStatus, listReported, oldestWaitingSeconds } from '#deployments/queue/queries.ts';
import { readWork } from '#app/work-reports.ts';
import { watchWork } from '#platform/work/gauges.ts';
import type { Database } from '#platform/database/index.ts';

/** Metrics that Prometheus scrapes. */
export interface Metrics {
  registry: Registry;
  answered(route: string, method: string, status: number, seconds: number): void;
  /** Shows how many event streams are open in this process. */
  watchStreams(count: () => number): void;
}

export function createMetrics(db: Database): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const requests = new Histogram({
    name: 'quarterdeck_http_request_seconds',
    help: 'Duration of API requests by route, method and status.',
    labelNames: ['route', 'method', 'status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5],
    registers: [registry],
  });
  new Gauge({
    name: 'quarterdeck_deployments',
    help: 'Deployments that have not ended, by status.',
    labelNames: ['status'],
    registers: [registry],
    async collect() {
      this.reset();
      for (const row of await countByStatus(db)) this.set({ status: row.status }, row.count);
    },
  });
  new Gauge({
    name: 'quarterdeck_deployment_oldest_waiting_seconds',
    help: 'Seconds for which the oldest waiting deployment has waited; 0 where none waits.',
    registers: [registry],
    async collect() {
      this.set(await oldestWaitingSeconds(db));
    },
  });
  new Gauge({
    name: 'quarterdeck_queue_findings',
    help: 'What holds the queue up: CYCLE (requests that wait for each other), UNCLAIMED (requests that no worker claims).',
    labelNames: ['kind'],
    registers: [registry],
    async collect() {
      const found = await listReported(db);
      for (const kind of ['CYCLE', 'UNCLAIMED']) this.set({ kind }, found.filter((one) => one.kind === kind).length);
    },
  });
  watchWork(registry, () => readWork(db));
  new Counter({ name: 'quarterdeck_starts_total', help: 'Starts of this process.', registers: [registry] }).inc();
  return {
    registry,
    answered: (route, method, status, seconds) => requests.observe({ route, method, status }, seconds),
    watchStreams: (count) =>
      void new Gauge({
        name: 'quarterdeck_event_streams',
        help: 'Event streams that are open in this process.',
        registers: [registry],
        collect() {
          this.set(count());
        },
      }),
  };
}
