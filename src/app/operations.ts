import type { Server } from 'node:http';
import { createServer } from '#kernel/node-http.ts';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { listReported, oldestWaitingSeconds } from '#deployments/queue/queries.ts';
import { readWork } from '#app/work-reports.ts';
import { sql, type Database } from '#platform/database/index.ts';

/** What Prometheus reads. */
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
      const rows = await db
        .selectFrom('deployment')
        .select(['status', sql<number>`count(*)`.as('count')])
        .where('status', '<>', 'ENDED')
        .groupBy('status')
        .execute();
      for (const row of rows) this.set({ status: row.status }, row.count);
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
  watchWork(db, registry);
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

/** Shows the figures of each kind of durable work. Its gauges, which are collected together, share one look at the database. */
function watchWork(db: Database, registry: Registry): void {
  const registers = [registry];
  let reading: ReturnType<typeof readWork> | undefined;
  const read = () => (reading ??= readWork(db).finally(() => (reading = undefined)));
  new Gauge({
    name: 'quarterdeck_work',
    help: 'Open items by kind of work: waiting, running, and retried (those of both that were begun more than once).',
    labelNames: ['work', 'state'],
    registers,
    async collect() {
      for (const { name: work, waiting, running, retried } of await read())
        for (const [state, count] of Object.entries({ waiting, running, retried })) this.set({ work, state }, count);
    },
  });
  new Gauge({
    name: 'quarterdeck_work_oldest_waiting_seconds',
    help: 'Seconds for which the oldest waiting item of a kind of work has waited; 0 where none waits.',
    labelNames: ['work'],
    registers,
    async collect() {
      for (const { name: work, oldestWaiting } of await read())
        this.set({ work }, oldestWaiting ? Math.max(0, Date.now() - oldestWaiting.getTime()) / 1000 : 0);
    },
  });
  new Gauge({
    name: 'quarterdeck_work_last_failure_timestamp_seconds',
    help: 'Time of the last failure of a kind of work, in seconds since 1970; absent where none is known.',
    labelNames: ['work'],
    registers,
    async collect() {
      const found = await read();
      this.reset();
      for (const { name: work, lastFailure } of found)
        if (lastFailure) this.set({ work }, lastFailure.at.getTime() / 1000);
    },
  });
}

/** The listener of operators: /healthz (the process answers), /readyz (the database does too), /metrics (Prometheus). */
export function createOperationsServer(db: Database, metrics: Metrics): Server {
  return createServer((request, response) => {
    const answer = (status: number, text: string, type = 'application/json') =>
      response.writeHead(status, { 'content-type': type }).end(text);
    const path = request.url?.split('?')[0];
    if (path === '/healthz') answer(200, '{"status":"ok"}');
    else if (path === '/readyz')
      sql`select 1`.execute(db).then(
        () => answer(200, '{"status":"ready"}'),
        () => answer(503, '{"status":"not ready","reason":"the database does not answer"}'),
      );
    else if (path === '/metrics')
      metrics.registry.metrics().then(
        (text) => answer(200, text, metrics.registry.contentType),
        () => answer(503, '{"status":"the metrics cannot be read"}'),
      );
    else answer(404, '{"status":"not found"}');
  });
}
