/** Observations and answers of a runtime. */
import type { Readable, Writable } from 'node:stream';
import type { RequestCounts } from '#runtimes/router.ts';
import type { WorkloadIdentity } from './identity.ts';

/** Kubernetes service that a chart made. */
export interface ChartService {
  name: string;
  type: string;
  ports: { name?: string; port: number }[];
  selectors: { key: string; value: string }[];
}

/** End of an execution. */
export interface TaskEnd {
  /**
   * Reason of the end. `lost`: the execution started and its end cannot be known (a reboot, or it was removed while it ran); it must not
   * run again unless a person asks.
   */
  reason: 'exited' | 'timeout' | 'lost';
  /** Exit status; null after a signal, after an unknown end, and when the runtime stopped the command, whatever status it then returned. */
  exitCode: number | null;
  /** Name of the signal that ended the command (`SIGKILL`). A line of the log reports a lack of memory. */
  signal: string | null;
  /** ISO 8601 with milliseconds. */
  startedAt: string;
  endedAt: string;
  /** Content of the file at `outputPath`; null without one, and after any end other than exit status 0. */
  output: string | null;
}

/** Program that runs beside a workload, in one of its instances. */
export interface ExecRequest {
  /** Program and arguments: no shell, never a secret. */
  command: string[];
  /** Variables besides those of the instance; secrets go here. */
  environment: Record<string, string>;
  /** Standard input of the program, read to the end; empty if absent. */
  stdin?: Readable;
  /** Receives the standard output with back-pressure. The stream is not ended; an abort destroys it. */
  stdout: Writable;
  /** Receives the standard error likewise; if absent, only the last bytes are kept (`ExecEnd.stderr`). */
  stderr?: Writable;
  /** Name of the instance to run in; if absent, any instance that serves. */
  instance?: string;
  /** Size of a terminal to run the program on; its output then includes standard error. */
  terminal?: { columns: number; rows: number };
}

/** Port of an instance that serves. */
export interface InstancePort {
  instance: string;
  /** Number of the port within the instance. */
  port: number;
}

/** Addresses of the ports of an instance that serves. This process reaches them unless the runtime has `openPort`. */
export interface InstanceEndpoints {
  instance: string;
  ports: { internalPort: number; address: string; port: number }[];
}

export interface ExecEnd {
  exitCode: number;
  /** Last 4 KB of the standard error. */
  stderr: string;
}

export interface InstanceObservation {
  /** Name of the instance (`<service>-<generation>-<n>`). */
  name: string;
  state: 'starting' | 'running' | 'ready' | 'restarting' | 'stopped' | 'failed';
  restarts: number;
  startedAt: string | null;
  /** Exit status and reason of the last end, if it ever ended. */
  lastExit: InstanceExit | null;
}

export interface InstanceExit {
  code: number | null;
  signal: string | null;
  reason: string;
  at: string;
}

export interface Observation {
  /** State of the service. `absent`: nothing of the service exists; `partial`: fewer instances are ready than required. */
  state: 'absent' | 'stopped' | 'partial' | 'running' | 'failed';
  /** Generation that serves; null if none does. */
  generation: number | null;
  instances: InstanceObservation[];
  /** Explanation for people (why the state is partial or failed), in a sentence; empty when all is well. */
  message: string;
  /** Differences from the release, where the runtime tells them. */
  drift?: DriftedField[];
}

/** Field of a service's object that another program has changed, or object that was removed. */
export interface DriftedField {
  /** Kind and name of the object: `Deployment app-z1a2b3c4d`. */
  object: string;
  /** Path of the field: `spec.template.spec.containers[app].image`; empty if the object was removed. */
  field: string;
  /** Program that wrote it, by its name in the cluster (`kubectl-edit`); null if unknown. */
  manager: string | null;
}

/** Change that the submission of a release would make to an object of a service. */
export interface ObjectChange {
  /** Kind and name of the object: `Deployment app-z1a2b3c4d`. */
  object: string;
  /** `REFUSED`: the cluster would not take it, for the reason in `message`. */
  change: 'CREATED' | 'CHANGED' | 'REMOVED' | 'REFUSED';
  message?: string;
  /** Fields of a changed object; `from` or `to` is left out if there is none, and both if they are too large. */
  fields: { path: string; from?: unknown; to?: unknown }[];
}

/** Workload that exists, found by its identity, without a handle. */
export interface FoundWorkload {
  /** Identity with the generation that serves, otherwise the highest of which anything exists. */
  identity: WorkloadIdentity;
  displayName: string;
  /** State of the workload. `running`: at least one of its processes lives, ready or not. */
  state: 'running' | 'stopped';
}

export interface LogLine {
  /** ISO 8601 with milliseconds. */
  at: string;
  instance: string;
  generation: number;
  stream: 'stdout' | 'stderr';
  text: string;
}

/** Choice among the log lines of a service. */
export interface LogOptions {
  /** Number of lines that already exist; the newest ones are chosen. */
  tail: number;
  /** True if new lines follow until `signal` is aborted. */
  follow: boolean;
  signal: AbortSignal;
  /** Earliest time of a line: a Date, or ISO 8601 with any offset. */
  since?: Date | string;
  /** Name of the only instance whose lines are wanted; an unknown one has none. */
  instance?: string;
  /**
   * True if only lines of each instance's last ended run are wanted: the run before its last restart, or, while the instance waits to be
   * started again, the run that crashed. An instance that never restarted has none, and nothing is followed.
   */
  previous?: boolean;
}

export interface InstanceMetrics {
  instance: string;
  /** Name of the node that it is on, where a cluster has several. */
  node?: string;
  cpuMilli: number;
  /** CPU time in milliseconds that the present run has used so far; absent where only a rate is known. */
  cpuMs?: number;
  memoryBytes: number;
  /** Limit of CPU; where the machine cannot limit it, the amount that the service requests. */
  cpuLimitMilli: number;
  memoryLimitBytes: number;
  /** Start time in ISO 8601; null if unknown. */
  startedAt: string | null;
  restarts: number;
  at: string;
}

/** Resources of a node. */
export interface NodeResources {
  cpuMilli: number;
  memoryBytes: number;
  /** Bytes for images, logs and what instances write outside of volumes; 0 if unknown. */
  ephemeralStorageBytes: number;
  /** Number of pods; 0 if unknown. */
  pods: number;
}

/** Node of a cluster. Texts are empty where they are unknown. */
export interface RuntimeNode {
  name: string;
  /** Time in ISO 8601. */
  createdAt: string;
  /** As images name it, such as `amd64`. */
  architecture: string;
  operatingSystem: string;
  kernelVersion: string;
  kubeletVersion: string;
  osImage: string;
  /** Type in the words of the cloud provider; null if unknown. */
  instanceType: string | null;
  isUnschedulable: boolean;
  capacity: NodeResources;
  /** Part of the capacity that instances can have. */
  allocatable: NodeResources;
  /** Use by all programs of the node; null where nothing measures it. */
  usage: { cpuMilli: number; memoryBytes: number } | null;
}

/** Requests that the gateway of a cluster has counted. */
export interface GatewayRequests {
  /** Id of this look, from which the next one counts on. */
  look: string;
  /** Null where the look before is not known to this process, or was minutes ago. */
  counts: RequestCounts | null;
  /** Reasons for which a part was not counted, as sentences. */
  problems: string[];
}
