import { badRequest } from '#kernel/errors.ts';
import { permits, type Principal } from '#platform/access/principal.ts';
import { defineSocket, SharedLooks, type Socket, type SocketCall } from '#platform/sockets/index.ts';
import type { ClusterInstance, ClusterSocketNeeds, NodeUsage } from '#resources/cluster/needs.ts';
import { clusterTarget, type ClusterTarget } from '#resources/cluster/target.ts';

/** Milliseconds between two measurements. */
const LOOK_MS = 5_000;
const MIB = 2 ** 20;

interface Look {
  node: NodeUsage;
  instances: ClusterInstance[];
}

/** Use of the machine of a cluster, and of each instance on it that the caller may see. */
export function clusterMetricsSocket(needs: ClusterSocketNeeds): Socket {
  const looks = new SharedLooks<Look>(LOOK_MS);
  return defineSocket({
    id: 'followClusterMetrics',
    path: '/cluster/metrics',
    summary: `CPU and memory of the machine of a cluster and of the instances on it, measured every ${LOOK_MS / 1000} seconds`,
    frames: 'text, each `{"node_pools": [], "nodes": [{"name", "metrics_usage", "pods", …}], "pvcs": []}`',
    target: { ...clusterTarget, param: 'cluster' },
    action: 'cluster.read',
    open: async (call: SocketCall<ClusterTarget>) => {
      const { target: cluster } = call;
      const machineId = cluster.node_id;
      if (machineId === null)
        throw badRequest(
          `Cluster ${cluster.name} on the ${cluster.runtime} runtime is on no machine of this installation: look at its metrics there.`,
        );
      const read = async (): Promise<Look> => {
        const [node, instances] = await Promise.all([needs.nodeUsage(machineId), needs.measureCluster(call, cluster)]);
        return { node, instances };
      };
      // Before the handshake, as long as another machine can still be asked instead of this one.
      await needs.nodeUsage(machineId);
      return async (peer) => {
        for await (const look of looks.follow(cluster.id, read, peer.signal))
          await peer.send(JSON.stringify(toView(cluster, look, peer.who())));
      };
    },
  });
}

/** Returns a frame with the instances of those services that the caller may read. */
function toView(cluster: ClusterTarget, { node, instances }: Look, caller: Principal) {
  const seen = instances.filter((instance) => permits(caller, 'service.read', instance));
  const memoryMib = Math.round(node.memoryTotalBytes / MIB);
  const usedMib = Math.round((node.memoryTotalBytes - node.memoryAvailableBytes) / MIB);
  const capacity = { cpu_milli: node.cpuCores * 1000, memory_mib: memoryMib, ephemeral_storage_mib: 0, pods: 0 };
  const cpu = seen.reduce((sum, { cpuLimitMilli }) => sum + cpuLimitMilli, 0);
  const memory = Math.round(seen.reduce((sum, { memoryLimitBytes }) => sum + memoryLimitBytes, 0) / MIB);
  return {
    node_pools: [],
    nodes: [
      {
        // Organizations see ids of machines, no names, and nothing of their systems.
        name: node.instance,
        created_at: cluster.created_at.getTime(),
        architecture: node.architecture,
        operating_system: node.operatingSystem,
        kernel_version: '',
        kubelet_version: '',
        os_image: '',
        instance_type: null,
        addresses: [],
        annotations: {},
        conditions: [],
        labels: {},
        taints: [],
        unschedulable: cluster.locked_at !== null,
        resources_capacity: capacity,
        resources_allocatable: capacity,
        resources_allocated: {
          request_cpu_milli: cpu,
          limit_cpu_milli: cpu,
          request_memory_mib: memory,
          limit_memory_mib: memory,
        },
        metrics_usage: usageOf(node.cpuMilli, capacity.cpu_milli, usedMib, memoryMib),
        pods: seen.map(toPod),
      },
    ],
    pvcs: [],
  };
}

function toPod(instance: ClusterInstance) {
  const { cpuLimitMilli: cpu, memoryLimitBytes, startedAt, at } = instance;
  const memory = Math.round(memoryLimitBytes / MIB);
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
    metrics_usage: usageOf(instance.cpuMilli, cpu, Math.round(instance.memoryBytes / MIB), memory),
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
