import { Gauge, type Registry } from 'prom-client';
import type { WorkStatus } from '#platform/work/index.ts';

/** Figures of one kind of work. */
export type NamedWorkStatus = WorkStatus & { name: string };

/** Registers the figures of each kind of durable work. The gauges, which are collected together, share one look at the database. */
export function watchWork(registry: Registry, readWork: () => Promise<NamedWorkStatus[]>): void {
  const registers = [registry];
  let reading: Promise<NamedWorkStatus[]> | undefined;
  const read = () => (reading ??= readWork().finally(() => (reading = undefined)));
  new Gauge({
    name: 'quarterdeck_work',
    help: 'Open items by kind of work: waiting, running, and retried (those that were begun more than once, or whose last run failed).',
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
