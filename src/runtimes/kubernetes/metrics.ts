import { RuntimeError, type Handle, type InstanceMetrics } from '#runtimes/runtime.ts';
import { list, type Cluster } from './cluster.ts';
import { API, extensionsOf } from './extensions.ts';
import type { ClusterObject, Pod } from './kinds.ts';
import { namespaceOf, ofService } from './labels.ts';
import { CONTAINER } from './objects.ts';
import { instanceOf, listPods } from './pods.ts';

interface PodMetrics extends ClusterObject {
  timestamp: string;
  containers: { name: string; usage: Quantities }[];
}

type Quantities = Partial<Record<'cpu' | 'memory', string>>;

/** Returns CPU and memory of the pods of a service (`Runtime.metrics`). Pods that were not measured yet are left out. */
export async function measureService(cluster: Cluster, { identity }: Handle): Promise<InstanceMetrics[]> {
  const pods = await listPods(cluster, identity);
  if (pods.length === 0) return [];
  const { hasMetrics } = await extensionsOf(cluster);
  if (!hasMetrics)
    throw new RuntimeError(
      'refused',
      `The cluster measures no pods: its API ${API.metrics} does not answer. Install metrics-server.`,
    );
  const measured = await list<PodMetrics>(cluster, 'PodMetrics', namespaceOf(identity), ofService(identity));
  const byName = new Map(measured.map((one) => [one.metadata.name, one]));
  return pods.flatMap((pod) => {
    const metrics = byName.get(pod.metadata.name);
    return metrics ? [metricsOf(pod, metrics)] : [];
  });
}

function metricsOf(pod: Pod, { containers, timestamp }: PodMetrics): InstanceMetrics {
  const sum = (name: keyof Quantities) =>
    containers.reduce((total, { usage }) => total + quantityOf(usage[name] ?? '0'), 0);
  const { name, restarts, startedAt } = instanceOf(pod);
  const limits = limitsOf(pod);
  return {
    instance: name,
    ...(pod.spec.nodeName === undefined ? {} : { node: pod.spec.nodeName }),
    cpuMilli: Math.round(sum('cpu') * 1000),
    memoryBytes: Math.round(sum('memory')),
    cpuLimitMilli: Math.round(quantityOf(limits.cpu ?? '0') * 1000),
    memoryLimitBytes: Math.round(quantityOf(limits.memory ?? '0')),
    startedAt,
    restarts,
    at: new Date(timestamp).toISOString(),
  };
}

const limitsOf = ({ spec }: Pod): Quantities => {
  const containers = spec['containers'] as { name: string; resources?: { limits?: Quantities } }[];
  return containers.find(({ name }) => name === CONTAINER)?.resources?.limits ?? {};
};

/** Factors of the suffixes of quantities; the metrics of pods have `n`, `u`, `m` and `Ki`. */
const FACTORS: Record<string, number> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

/** Returns the number that a quantity of Kubernetes stands for (`250m`, `12Mi`, `1e3`). Throws RuntimeError for anything else. */
export function quantityOf(text: string): number {
  const [, digits, suffix] = /^([+-]?[\d.]{1,40}(?:[eE][+-]?\d{1,2})?)([a-zA-Z]{0,2})$/.exec(text) ?? [];
  const value = Number(digits) * (FACTORS[suffix ?? ''] ?? Number.NaN);
  if (!Number.isFinite(value))
    throw new RuntimeError('failed', `The cluster gives ${JSON.stringify(text.slice(0, 60))}, which is no quantity.`);
  return value;
}
