import { LATENCY_BOUNDS_MS } from '#kernel/latency-classes.ts';
import type { ServiceRequests } from '#runtimes/router.ts';

/** Numbers of a service's requests. */
export type Tally = Pick<ServiceRequests, 'statuses' | 'latencies'>;

export const emptyTally = (): Tally => ({
  statuses: [0, 0, 0, 0, 0],
  latencies: [...LATENCY_BOUNDS_MS, Infinity].map(() => 0),
});
