import type { NodeResources, RuntimeNode } from '#runtimes/runtime.ts';
import { list, type Cluster } from './cluster.ts';
import { ApiError } from './errors.ts';
import { extensionsOf } from './extensions.ts';
import type { ClusterObject } from './kinds.ts';
import { quantityOf } from './metrics.ts';

type Quantities = Record<string, string>;

interface NodeObject extends ClusterObject {
  spec: { unschedulable?: boolean };
  status?: { capacity?: Quantities; allocatable?: Quantities; nodeInfo?: Record<string, string> };
}

interface NodeMetricsObject extends ClusterObject {
  usage: Quantities;
}

const INSTANCE_TYPE = 'node.kubernetes.io/instance-type';

/** Returns the nodes of a cluster, with their use where the cluster measures them (`Runtime.nodes`). */
export async function listNodes(cluster: Cluster): Promise<RuntimeNode[]> {
  const [nodes, measured] = await Promise.all([
    list<NodeObject>(cluster, 'Node', undefined, ''),
    measureNodes(cluster),
  ]);
  return nodes.map((node) => nodeOf(node, measured.get(node.metadata.name)));
}

function nodeOf({ metadata, spec, status = {} }: NodeObject, usage: Quantities | undefined): RuntimeNode {
  const { capacity = {}, allocatable = {}, nodeInfo = {} } = status;
  return {
    name: metadata.name,
    createdAt: new Date(metadata.creationTimestamp ?? 0).toISOString(),
    architecture: nodeInfo['architecture'] ?? '',
    operatingSystem: nodeInfo['operatingSystem'] ?? '',
    kernelVersion: nodeInfo['kernelVersion'] ?? '',
    kubeletVersion: nodeInfo['kubeletVersion'] ?? '',
    osImage: nodeInfo['osImage'] ?? '',
    instanceType: metadata.labels?.[INSTANCE_TYPE] ?? null,
    isUnschedulable: spec.unschedulable === true,
    capacity: resourcesOf(capacity),
    allocatable: resourcesOf(allocatable),
    usage: usage ? { cpuMilli: milliOf(usage['cpu']), memoryBytes: bytesOf(usage['memory']) } : null,
  };
}

const resourcesOf = (quantities: Quantities): NodeResources => ({
  cpuMilli: milliOf(quantities['cpu']),
  memoryBytes: bytesOf(quantities['memory']),
  ephemeralStorageBytes: bytesOf(quantities['ephemeral-storage']),
  pods: bytesOf(quantities['pods']),
});

const milliOf = (text = '0'): number => Math.round(quantityOf(text) * 1000);
const bytesOf = (text = '0'): number => Math.round(quantityOf(text));

/** Returns the use of nodes by their names. Empty where nothing measures them, or the account may not read it. */
async function measureNodes(cluster: Cluster): Promise<Map<string, Quantities>> {
  const { hasMetrics } = await extensionsOf(cluster);
  if (!hasMetrics) return new Map();
  try {
    const found = await list<NodeMetricsObject>(cluster, 'NodeMetrics', undefined, '');
    return new Map(found.map(({ metadata, usage }) => [metadata.name, usage]));
  } catch (error) {
    // The check of the cluster tells of a missing right; 404 is of an API that measures pods only.
    if (error instanceof ApiError && [403, 404].includes(error.status)) return new Map();
    throw error;
  }
}
