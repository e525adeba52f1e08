import { badRequest, invalidField } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import type { Static } from '#platform/http/schema.ts';
import type { ClusterNeeds, NodeMetrics } from '#resources/cluster/needs.ts';
import type { MetricsQuery } from '#resources/cluster/schema/observation.ts';
import { matches, parseSelector } from '#resources/cluster/observation/selector.ts';
import type { ClusterTarget } from '#resources/cluster/target.ts';
import { parseTime } from '#resources/cluster/observation/time.ts';

const HELP =
  'a metric by its name with labels at most is understood here, such as node_memory_MemTotal_bytes{instance="…"}; expressions need a Prometheus';

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

/**
 * Processor and memory of the machine of a cluster, by the interface of Prometheus. Only the present is known: a range has one
 * sample if it reaches up to now. A metric that isn't measured has an empty result, as Prometheus answers it.
 */
export async function queryMetrics(
  context: Context,
  needs: Pick<ClusterNeeds, 'nodeMetrics'>,
  cluster: ClusterTarget,
  query: Static<typeof MetricsQuery>,
) {
  const endpoint = query.endpoint.replace(/^.*\//, '');
  if (endpoint !== 'query' && endpoint !== 'query_range')
    throw invalidField('endpoint', 'must be query or query_range');
  if (cluster.node_id === null)
    throw badRequest(
      `Cluster ${cluster.name} on the ${cluster.runtime} runtime runs on no machine of this installation, and its own Prometheus is not asked: look at its metrics there.`,
    );
  const selector = parseSelector(query.query, HELP);
  if (selector.name === null || selector.filters.length > 0) throw badRequest(`query: ${HELP}`);
  const node = await needs.nodeMetrics(cluster.node_id);
  const read = Object.hasOwn(METRICS, selector.name) ? METRICS[selector.name] : undefined;
  const labels = { __name__: selector.name, instance: node.instance, cluster_id: cluster.id };
  const known = read !== undefined && matches(selector.matchers, labels);
  const sample: [number, string][] = read && known ? [[node.at.getTime() / 1000, String(read(node))]] : [];
  const series = (values: object) => (sample.length > 0 ? [{ metric: labels, ...values }] : []);
  if (endpoint === 'query') return answer('vector', series({ value: sample[0] }));
  return answer('matrix', reachesNow(query, context.clock.now()) ? series({ values: sample }) : []);
}

const answer = (resultType: string, result: unknown[]) => ({
  metrics: JSON.stringify({ status: 'success', data: { resultType, result } }),
});

/** Age up to which the end of a range means now. */
const NOW_MS = 60_000;

function reachesNow(query: Static<typeof MetricsQuery>, now: Date): boolean {
  const [start, end] = (['start', 'end'] as const).map((field) => {
    if (query[field] === undefined) throw invalidField(field, 'is required with query_range');
    return parseTime(field, query[field]);
  });
  if (start! > end!) throw invalidField('start', 'must not be after end');
  return start! <= now && end!.getTime() >= now.getTime() - NOW_MS;
}
