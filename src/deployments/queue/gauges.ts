import { Gauge, type Registry } from 'prom-client';
import { countByStatus, listReported, oldestWaitingSeconds } from '#deployments/queue/queries.ts';
import type { Database } from '#platform/database/index.ts';

/** Registers the gauges of the queue of deployments. */
export function registerQueueGauges(registry: Registry, db: Database): void {
  const registers = [registry];
  new Gauge({
    name: 'quarterdeck_deployments',
    help: 'Deployments that have not ended, by status.',
    labelNames: ['status'],
    registers,
    async collect() {
      this.reset();
      for (const row of await countByStatus(db)) this.set({ status: row.status }, row.count);
    },
  });
  new Gauge({
    name: 'quarterdeck_deployment_oldest_waiting_seconds',
    help: 'Seconds for which the oldest waiting deployment has waited; 0 where none waits.',
    registers,
    async collect() {
      this.set(await oldestWaitingSeconds(db));
    },
  });
  new Gauge({
    name: 'quarterdeck_queue_findings',
    help: 'What holds the queue up: CYCLE (requests that wait for each other), UNCLAIMED (requests that no worker claims).',
    labelNames: ['kind'],
    registers,
    async collect() {
      const found = await listReported(db);
      for (const kind of ['CYCLE', 'UNCLAIMED']) this.set({ kind }, found.filter((one) => one.kind === kind).length);
    },
  });
}
