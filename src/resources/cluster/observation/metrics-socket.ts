import { permits, type Principal } from '#platform/access/principal.ts';
import { defineSocket, SharedLooks, type Socket, type SocketCall } from '#platform/sockets/index.ts';
import type { ClusterInstance, ClusterSocketNeeds, NodeUsage } from '#resources/cluster/needs.ts';
import { clusterTarget, type ClusterTarget } from '#resources/cluster/target.ts';
import type { NodeResources, RuntimeNode } from '#runtimes/runtime.ts';

/** Milliseconds between two measurements. */
const LOOK_MS = 5_000;
const MIB = 2 ** 20;

interface Look {
  nodes: RuntimeNode[];
  instances: ClusterInstance[];
}

/** Use of the nodes of a cluster, and of each instance on them that the caller may see. */
export function clusterMetricsSocket(needs: ClusterSocketNeeds): Socket {
  const looks = new SharedLooks<Look>(LOOK_MS);
  return defineSocket({
    id: 'followClusterMetrics',
    path: '/cluster/metrics',
    summary: `CPU and memory of the nodes of a cluster and of the instances on them, measured every ${LOOK_MS / 1000} seconds`,
    frames: 'text, each `{"node_pools": [], "nodes": [{"name", "metrics_usage", "pods", …}], "pvcs": []}`',
    target: { ...clusterTarget, param: 'cluster' },
    action: 'cluster.read',
    open: async (call: SocketCall<ClusterTarget>) => {
      const { target: cluster } = call;
      const nodesOf = async (): Promise<RuntimeNode[]> =>
        cluster.node_id === null
          ? needs.clusterNodes(cluster)
          : [toNode(cluster, await needs.nodeUsage(cluster.node_id))];
      const read = async (): Promise<Look> => {
        const [nodes, instances] = await Promise.all([nodesOf(), needs.measureCluster(call, cluster)]);
        return { nodes, instances };
      };
      // Before the handshake, as long as another machine can still be asked instead of this one.
      await nodesOf();
      return async (peer) => {
        for await (const look of looks.follow(cluster.id, read, peer.signal))
          await peer.send(JSON.stringify(toView(look, peer.who())));
      };
    },
  });
}

/** Returns the machine of a cluster as a node. Organizations see ids of machines, no names, and nothing of their systems. */
function toNode({ created_at, locked_at }: ClusterTarget, usage: NodeUsage): RuntimeNode {
  const { cpuCores, memoryTotalBytes, memoryAvailableBytes, cpuMilli } = usage;
  const all = { cpuMilli: cpuCores * 1000, memoryBytes: memoryTotalBytes, ephemeralStorageBytes: 0, pods: 0 };
  return {
    name: usage.instance,
    createdAt: created_at.toISOString(),
    architecture: usage.architecture,
    operatingSystem: usage.operatingSystem,
    kernelVersion: '',
    kubeletVersion: '',
    osImage: '',
    instanceType: null,
    isUnschedulable: locked_at !== null,
    capacity: all,
    allocatable: all,
    usage: { cpuMilli, memoryBytes: memoryTotalBytes - memoryAvailableBytes },
  };
}

/** Returns a frame with the instances of those services that the caller may read. */
function toView({ nodes, instances }: Look, caller: Principal) {
  const seen = instances.filter((instance) => permits(caller, 'service.read', instance));
  const [only] = nodes;
  const isOn = (node: RuntimeNode, instance: ClusterInstance) => (instance.node ?? only?.name) === node.name;
  return {
    node_pools: [],
    nodes: nodes.map((node) =>
      toNodeView(
        node,
        seen.filter((instance) => isOn(node, instance)),
      ),
    ),
    pvcs: [],
  };
}

function toNodeView(node: RuntimeNode, instances: ClusterInstance[]) {
  const { capacity, usage } = node;
  const cpu = instances.reduce((sum, { cpuLimitMilli }) => sum + cpuLimitMilli, 0);
  const memory = toMib(instances.reduce((sum, { memoryLimitBytes }) => sum + memoryLimitBytes, 0));
  return {
    name: node.name,
    created_at: Date.parse(node.createdAt),
    architecture: node.architecture,
    operating_system: node.operatingSystem,
    kernel_version: node.kernelVersion,
    kubelet_version: node.kubeletVersion,
    os_image: node.osImage,
    instance_type: node.instanceType,
    // Several organizations may share the cluster.
    addresses: [],
    annotations: {},
    conditions: [],
    labels: {},
    taints: [],
    unschedulable: node.isUnschedulable,
    resources_capacity: toResources(capacity),
    resources_allocatable: toResources(node.allocatable),
    resources_allocated: {
      request_cpu_milli: cpu,
      limit_cpu_milli: cpu,
      request_memory_mib: memory,
      limit_memory_mib: memory,
    },
    metrics_usage: usage
      ? usageOf(usage.cpuMilli, capacity.cpuMilli, toMib(usage.memoryBytes), toMib(capacity.memoryBytes))
      : null,
    pods: instances.map(toPod),
  };
}

const toMib = (bytes: number): number => Math.round(bytes / MIB);

const toResources = ({ cpuMilli, memoryBytes, ephemeralStorageBytes, pods }: NodeResources) => ({
  cpu_milli: cpuMilli,
  memory_mib: toMib(memoryBytes),
  ephemeral_storage_mib: toMib(ephemeralStorageBytes),
  pods,
});

function toPod(instance: ClusterInstance) {
  const { cpuLimitMilli: cpu, memoryLimitBytes, startedAt, at } = instance;
  const memory = toMib(memoryLimitBytes);
  return {
    name: instance.instance,
    namespace: instance.environmentId,
    created_at: Date.parse(startedAt ?? at),
    status_phase: 'RUNNING',
    restart_count: instance.restarts,
    error_container_statuses: [],
    images_version: {},
    cpu_milli_request: cpu,
    cpu_milli_limit: cpu,
    memory_mib_request: memory,
    memory_mib_limit: memory,
    metrics_usage: usageOf(instance.cpuMilli, cpu, toMib(instance.memoryBytes), memory),
    qovery_service_info: {
      project_id: instance.projectId,
      project_name: instance.projectName,
      environment_id: instance.environmentId,
      environment_name: instance.environmentName,
      service_id: instance.serviceId,
      service_name: instance.serviceName,
    },
  };
}

const usageOf = (cpuMilli: number, ofCpu: number, memoryMib: number, ofMemory: number) => ({
  cpu_milli_usage: cpuMilli,
  cpu_percent_usage: percent(cpuMilli, ofCpu),
  memory_mib_working_set_usage: memoryMib,
  memory_percent_working_set_usage: percent(memoryMib, ofMemory),
});

const percent = (part: number, whole: number): number => (whole > 0 ? Math.round((part / whole) * 100) : 0);
