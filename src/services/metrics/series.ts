import { badRequest } from '#kernel/errors.ts';
import type { Call } from '#platform/http/route.ts';
import {
  listIntervals,
  listMetricServices,
  QUANTILES,
  RESOLUTIONS,
  type Interval,
  type Intervals,
  type MetricService,
  type RequestInterval,
} from '#services/metrics/queries.ts';
import type { ClusterTarget, MetricSeries, SeriesRequest } from '#resources/cluster/index.ts';

/** Series of a metric. */
interface Part {
  /** Labels beside those of the service. */
  labels: Record<string, string>;
  /** Value in base units; null where it could not be measured. */
  valueOf(interval: Intervals[keyof Intervals]): number | null;
}

interface ServiceMetric {
  help: string;
  source: keyof Intervals;
  parts: Part[];
}

/** Metric of what instances take. */
const taken = (help: string, valueOf: (interval: Interval) => number | null): ServiceMetric => ({
  help,
  source: 'service_metric',
  parts: [{ labels: {}, valueOf: (interval) => valueOf(interval as Interval) }],
});

/** Metric of requests, with a series for each value of a label. */
const answered = (
  help: string,
  label: string,
  values: readonly string[],
  valueOf: (interval: RequestInterval, at: number) => number | null,
): ServiceMetric => ({
  help,
  source: 'service_requests',
  parts: values.map((value, at) => ({
    labels: { [label]: value },
    valueOf: (interval) => valueOf(interval as RequestInterval, at),
  })),
});

const cores = (milli: number | null) => (milli === null ? null : milli / 1000);
const seconds = (milliseconds: number | null) => (milliseconds === null ? null : milliseconds / 1000);
/** A limit of 0 is none. */
const limit = (value: number | null) => (value === 0 ? null : value);

/** Metrics of services by their names in Prometheus. */
export const SERVICE_METRICS: Record<string, ServiceMetric> = {
  quarterdeck_service_instances: taken('Instances of a service that run, ready or not.', ({ instances }) => instances),
  quarterdeck_service_restarts: taken(
    'Restarts of the present instances of a service so far.',
    ({ restarts }) => restarts,
  ),
  quarterdeck_service_cpu_cores: taken(
    'CPU that all instances of a service use: the mean of the interval.',
    (interval) => cores(interval.cpu_milli),
  ),
  quarterdeck_service_cpu_cores_max: taken(
    'CPU that all instances of a service use: the highest measurement of the interval.',
    (interval) => cores(interval.cpu_milli_max),
  ),
  quarterdeck_service_cpu_limit_cores: taken('Limit of CPU of all instances of a service.', (interval) =>
    cores(limit(interval.cpu_milli_limit)),
  ),
  quarterdeck_service_memory_bytes: taken(
    'Memory that all instances of a service use: the mean of the interval.',
    (interval) => interval.memory_bytes,
  ),
  quarterdeck_service_memory_bytes_max: taken(
    'Memory that all instances of a service use: the highest measurement of the interval.',
    (interval) => interval.memory_bytes_max,
  ),
  quarterdeck_service_memory_limit_bytes: taken('Limit of memory of all instances of a service.', (interval) =>
    limit(interval.memory_bytes_limit),
  ),
  quarterdeck_service_requests_per_second: answered(
    'Requests to a service that its proxy answered, by the hundreds of their status: the mean of the interval.',
    'status',
    ['2xx', '3xx', '4xx', '5xx'],
    // An answer of 1xx is followed by another one, or changes to a protocol that is not counted.
    ({ rates }, at) => rates[at + 1]!,
  ),
  quarterdeck_service_latency_seconds: answered(
    'Time within which a share of the requests to a service was answered.',
    'quantile',
    QUANTILES.map(String),
    ({ quantiles }, at) => seconds(quantiles[at]!),
  ),
};

/** Labels of a service's series. */
export const labelsOf = ({ service_id, service, kind, environment_id, environment, ...place }: MetricService) => ({
  service_id,
  service,
  kind,
  environment_id,
  environment,
  project_id: place.project_id,
  project: place.project,
  cluster_id: place.cluster_id,
});

/** Values that one answer has at most. */
const MOST_VALUES = 100_000;
/** Seconds for which a value stands at least, as in Prometheus. */
const LOOKBACK_SECONDS = 300;

/** Answers the series of a metric at each step of a time. They are of the services on a cluster that the caller may read. */
export async function readServiceSeries(
  { db, principal, clock }: Pick<Call, 'db' | 'principal' | 'clock'>,
  cluster: ClusterTarget,
  { name, select, from, to, stepMs }: SeriesRequest,
): Promise<MetricSeries[]> {
  const metric = Object.hasOwn(SERVICE_METRICS, name) ? SERVICE_METRICS[name]! : undefined;
  if (!metric) return [];
  const all = await listMetricServices(db, principal, cluster, cluster.id);
  const chosen = all
    .flatMap((one) =>
      metric.parts.map((part) => ({ part, labels: { __name__: name, ...labelsOf(one), ...part.labels } })),
    )
    .filter(({ labels }) => select(labels));
  const steps = Math.floor((to.getTime() - from.getTime()) / stepMs) + 1;
  if (chosen.length * steps > MOST_VALUES)
    throw badRequest(
      `query: ${chosen.length} series at ${steps} times are more than ${MOST_VALUES.toLocaleString('en')} values: name fewer by service_id or environment_id, or ask for a shorter time or a larger step.`,
    );
  const resolution = resolutionFor(from, stepMs, clock.now());
  const lookbackMs = Math.max(LOOKBACK_SECONDS, 2 * resolution) * 1000;
  const intervals = await listIntervals(db, cluster, metric.source, {
    ids: [...new Set(chosen.map(({ labels }) => labels.service_id))],
    resolution,
    from: new Date(from.getTime() - lookbackMs),
    to,
  });
  const byService = Map.groupBy(intervals, ({ service_id: id }) => id);
  return chosen.flatMap(({ part, labels }) => {
    const own = byService.get(labels.service_id) ?? [];
    const samples = atSteps(own, { from: from.getTime(), steps, stepMs, lookbackMs }, part);
    return samples.length > 0 ? [{ labels, samples }] : [];
  });
}

/** Chooses the finest intervals that are kept from a time on, but none that are much finer than the step. */
function resolutionFor(from: Date, stepMs: number, now: Date): number {
  const age = (now.getTime() - from.getTime()) / 1000;
  const fitting = RESOLUTIONS.findLast(({ seconds }) => seconds * 1000 <= stepMs) ?? RESOLUTIONS[0]!;
  const kept = RESOLUTIONS.find(({ seconds, keptSeconds }) => seconds >= fitting.seconds && keptSeconds >= age);
  return (kept ?? RESOLUTIONS.at(-1)!).seconds;
}

interface Steps {
  from: number;
  steps: number;
  stepMs: number;
  lookbackMs: number;
}

/** Returns the value at each step: that of the latest interval which began before it. */
function atSteps(
  intervals: Intervals[keyof Intervals][],
  { from, steps, stepMs, lookbackMs }: Steps,
  { valueOf }: Part,
): MetricSeries['samples'] {
  const samples: MetricSeries['samples'] = [];
  let next = 0;
  for (let step = 0; step < steps; step++) {
    const at = from + step * stepMs;
    while (next < intervals.length && intervals[next]!.at.getTime() <= at) next++;
    const interval = intervals[next - 1];
    if (!interval || interval.at.getTime() <= at - lookbackMs) continue;
    const value = valueOf(interval);
    if (value !== null) samples.push([at / 1000, String(value)]);
  }
  return samples;
}
