import { badRequest, invalidField } from '#kernel/errors.ts';
import { permits } from '#platform/access/principal.ts';
import { forbiddenTo } from '#platform/http/load.ts';
import type { Call } from '#platform/http/route.ts';
import type { Static } from '#platform/http/schema.ts';
import type { ClusterNeeds, MetricSeries, NodeMetrics } from '#resources/cluster/needs.ts';
import type { MetricsQuery } from '#resources/cluster/schema/observation.ts';
import { matches, parseSelector, type Selector } from '#resources/cluster/observation/selector.ts';
import type { ClusterTarget } from '#resources/cluster/target.ts';
import { parseDuration, parseTime } from '#resources/cluster/observation/time.ts';

const HELP =
  'a metric by its name with labels at most is understood here, such as quarterdeck_service_cpu_cores{service_id="…"}; expressions need a Prometheus';

/** Beginning of the names of all metrics of services. */
const OF_SERVICES = 'quarterdeck_service_';

/** Metrics of a machine, under the names that Prometheus' node exporter and cAdvisor give them. */
const METRICS: Record<string, (node: NodeMetrics) => number> = {
  machine_cpu_cores: (node) => node.cpuCores,
  machine_memory_bytes: (node) => node.memoryTotalBytes,
  node_load1: (node) => node.load[0],
  node_load5: (node) => node.load[1],
  node_load15: (node) => node.load[2],
  node_memory_MemTotal_bytes: (node) => node.memoryTotalBytes,
  node_memory_MemAvailable_bytes: (node) => node.memoryAvailableBytes,
};

type Query = Static<typeof MetricsQuery>;
type Caller = Pick<Call, 'db' | 'principal' | 'clock'>;
type Needs = Pick<ClusterNeeds, 'nodeMetrics' | 'serviceSeries'>;

/**
 * Processor and memory of the services and of the machine of a cluster, by the interface of Prometheus. A metric that isn't measured has an
 * empty result, as Prometheus answers it.
 */
export async function queryMetrics(caller: Caller, needs: Needs, cluster: ClusterTarget, query: Query) {
  const endpoint = query.endpoint.replace(/^.*\//, '');
  if (endpoint !== 'query' && endpoint !== 'query_range')
    throw invalidField('endpoint', 'must be query or query_range');
  const selector = parseSelector(query.query, HELP);
  if (selector.name === null || selector.filters.length > 0) throw badRequest(`query: ${HELP}`);
  const read = selector.name.startsWith(OF_SERVICES) ? readServices : readMachine;
  const { name, matchers } = selector;
  const series = await read(caller, needs, cluster, { name, matchers }, { ...query, endpoint });
  const resultType = endpoint === 'query' ? 'vector' : 'matrix';
  const result = series.map(({ labels: metric, samples }) =>
    endpoint === 'query' ? { metric, value: samples[0] } : { metric, values: samples },
  );
  return { metrics: JSON.stringify({ status: 'success', data: { resultType, result } }) };
}

type Wanted = Pick<Selector, 'matchers'> & { name: string };

/** Reads what is kept of services. */
async function readServices(
  caller: Caller,
  needs: Needs,
  cluster: ClusterTarget,
  { name, matchers }: Wanted,
  query: Query,
): Promise<MetricSeries[]> {
  const select = (labels: Record<string, string>) => matches(matchers, labels);
  return needs.serviceSeries(caller, cluster, { name, select, ...timesOf(query, caller.clock.now()) });
}

/** Steps of a range that Prometheus answers at most. */
const MOST_STEPS = 11_000;

/** Returns the times at which a query wants values: one, or those of a range. */
function timesOf(query: Query, now: Date): { from: Date; to: Date; stepMs: number } {
  if (query.endpoint === 'query') {
    const at = query.time === undefined ? now : parseTime('time', query.time);
    return { from: at, to: at, stepMs: 1 };
  }
  const { start: from, end: to } = rangeOf(query);
  if (query.step === undefined) throw invalidField('step', 'is required with query_range');
  const stepMs = Math.floor(parseDuration('step', query.step));
  if (stepMs < 1) throw invalidField('step', 'must be above zero');
  if ((to.getTime() - from.getTime()) / stepMs >= MOST_STEPS)
    throw invalidField('step', `must be so large that the range has at most ${MOST_STEPS.toLocaleString('en')} steps`);
  return { from, to, stepMs };
}

/**
 * Measures the machine, for those who may read the cluster itself: the route is open to those who may read something on it. Only the present is
 * known: a range has one sample if it reaches up to now.
 */
async function readMachine(
  caller: Caller,
  needs: Needs,
  cluster: ClusterTarget,
  { name, matchers }: Wanted,
  query: Query,
): Promise<MetricSeries[]> {
  if (!permits(caller.principal, 'cluster.read', cluster)) throw forbiddenTo('cluster.read');
  if (cluster.node_id === null)
    throw badRequest(
      `Cluster ${cluster.name} on the ${cluster.runtime} runtime runs on no machine of this installation, and its own Prometheus is not asked: look at its metrics there.`,
    );
  const node = await needs.nodeMetrics(cluster.node_id);
  const read = Object.hasOwn(METRICS, name) ? METRICS[name] : undefined;
  const labels = { __name__: name, instance: node.instance, cluster_id: cluster.id };
  const isPresent = query.endpoint === 'query' || reachesNow(query, caller.clock.now());
  if (!read || !isPresent || !matches(matchers, labels)) return [];
  return [{ labels, samples: [[node.at.getTime() / 1000, String(read(node))]] }];
}

/** Age up to which the end of a range means now. */
const NOW_MS = 60_000;

function reachesNow(query: Query, now: Date): boolean {
  const { start, end } = rangeOf(query);
  return start <= now && end.getTime() >= now.getTime() - NOW_MS;
}

function rangeOf(query: Query): { start: Date; end: Date } {
  const [start, end] = (['start', 'end'] as const).map((field) => {
    if (query[field] === undefined) throw invalidField(field, 'is required with query_range');
    return parseTime(field, query[field]);
  }) as [Date, Date];
  if (start > end) throw invalidField('start', 'must not be after end');
  return { start, end };
}
