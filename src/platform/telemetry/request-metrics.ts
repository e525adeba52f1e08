import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** Metrics of the API server of this process. */
export interface RequestMetrics {
  answered(route: string, method: string, status: number, seconds: number): void;
  /** Shows how many event streams are open in this process. */
  watchStreams(count: () => number): void;
}

/** Registers the metrics of requests and streams, and counts this start of the process. */
export function registerRequestMetrics(registry: Registry): RequestMetrics {
  const registers = [registry];
  const requests = new Histogram({
    name: 'quarterdeck_http_request_seconds',
    help: 'Duration of API requests by route, method and status.',
    labelNames: ['route', 'method', 'status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5],
    registers,
  });
  new Counter({ name: 'quarterdeck_starts_total', help: 'Starts of this process.', registers }).inc();
  return {
    answered: (route, method, status, seconds) => requests.observe({ route, method, status }, seconds),
    watchStreams: (count) =>
      void new Gauge({
        name: 'quarterdeck_event_streams',
        help: 'Event streams that are open in this process.',
        registers,
        collect() {
          this.set(count());
        },
      }),
  };
}
