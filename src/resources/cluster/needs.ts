import type { Context } from '#platform/context.ts';
import type { Call } from '#platform/http/route.ts';
import type { ClusterTarget } from '#resources/cluster/target.ts';
import type { InstanceMetrics, RuntimeNode } from '#runtimes/runtime.ts';

/** Processor and memory of the machine that a cluster lives on, as they are now. */
export interface NodeMetrics {
  at: Date;
  /** Name of the machine. */
  instance: string;
  cpuCores: number;
  /** Load averages of 1, 5 and 15 minutes. */
  load: [number, number, number];
  memoryTotalBytes: number;
  memoryAvailableBytes: number;
}

/** Use of the machine of a cluster. */
export interface NodeUsage extends NodeMetrics {
  /** Milli-CPU that all programs of the machine use. */
  cpuMilli: number;
  /** As images name them: `amd64`, `linux`. */
  architecture: string;
  operatingSystem: string;
}

/** Use of an instance on a cluster, and the service that it is of. */
export interface ClusterInstance extends InstanceMetrics {
  organizationId: string;
  projectId: string;
  projectName: string;
  environmentId: string;
  environmentName: string;
  /** Mode of the environment. */
  mode: string;
  serviceId: string;
  serviceName: string;
}

/** Series of a metric: its labels, and its values as Prometheus writes them, with their times in seconds. */
export interface MetricSeries {
  labels: Record<string, string>;
  samples: [at: number, value: string][];
}

/** Question for the series of a metric. */
export interface SeriesRequest {
  name: string;
  /** Returns whether a series with these labels is wanted. */
  select(labels: Record<string, string>): boolean;
  /** First time, last time at most, and the step between two times. */
  from: Date;
  to: Date;
  stepMs: number;
}

/** Parts of the program that app/ gives to the sockets of clusters. */
export interface ClusterSocketNeeds {
  /** Measures a machine. Throws `OnOtherMachine` unless it is this one. */
  nodeUsage(machineId: string): Promise<NodeUsage>;
  /** Measures the nodes of a cluster that is no machine of this installation. Throws an error for people, also where it has none. */
  clusterNodes(cluster: ClusterTarget): Promise<RuntimeNode[]>;
  /** Measures the instances of all services on the cluster. Throws an error for people when the cluster does not answer. */
  measureCluster(context: Pick<Context, 'db'>, cluster: ClusterTarget): Promise<ClusterInstance[]>;
}

/** Parts of the program that app/ gives to the routes of clusters: they call other resources and the engine. */
export interface ClusterNeeds {
  /** Returns the organization's credentials with that id, locked against deletion and renaming until the commit. */
  holdCredentials(
    context: Context,
    organizationId: string,
    id: string,
  ): Promise<{ id: string; name: string; cloudProvider: string } | undefined>;
  /** Returns the ids that are no label groups of the organization. */
  unknownLabelsGroups(context: Context, organizationId: string, ids: string[]): Promise<string[]>;
  /** Requests that everything on the cluster stops, in the transaction of the call. */
  stopEnvironments(context: Context, cluster: ClusterTarget): Promise<void>;
  /** Answers the kept series of a metric of services on a cluster, of those that the caller may read. */
  serviceSeries(
    caller: Pick<Call, 'db' | 'principal' | 'clock'>,
    cluster: ClusterTarget,
    request: SeriesRequest,
  ): Promise<MetricSeries[]>;
  /** Measures a machine. Throws `OnOtherMachine` unless it is this one. */
  nodeMetrics(machineId: string): Promise<NodeMetrics>;
}
