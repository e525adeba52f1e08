/**
 * Interface between the engine and a runtime, which runs workloads (docs/contributing/engine.md, *Runtimes*). A runtime knows nothing of
 * the database or of HTTP: it receives plain data and returns plain data that another process can continue with.
 */
import type { Duplex } from 'node:stream';
import type { CertificateStatus } from '#runtimes/router.ts';
import type { EnvironmentIdentity, Handle, WorkloadIdentity } from './interface/identity.ts';
import type { CacheLimits, DiskUse } from './interface/disk.ts';
import type { BuildSpec, ChartSpec, Deployable, RegistryAccess, TaskSpec, WorkloadSpec } from './interface/specs.ts';
import type {
  ChartService,
  ExecEnd,
  ExecRequest,
  FoundWorkload,
  GatewayRequests,
  InstanceEndpoints,
  InstanceMetrics,
  InstancePort,
  LogLine,
  LogOptions,
  ObjectChange,
  Observation,
  RuntimeNode,
  TaskEnd,
} from './interface/observed.ts';
import type { BuildContext, RuntimeContext, TaskContext } from './interface/contexts.ts';
import type { VolumeContents } from './interface/volumes.ts';
import type { RuntimeName, RuntimeReport } from './interface/capabilities.ts';

export * from './interface/identity.ts';
export * from './interface/disk.ts';
export * from './interface/specs.ts';
export * from './interface/observed.ts';
export * from './interface/contexts.ts';
export * from './interface/capabilities.ts';
export * from './interface/errors.ts';
export * from './interface/volumes.ts';

/** Receiver of a watch. */
export interface WatchListener {
  /** Called for a service that may have changed. */
  changed(serviceId: string): void;
  /** Called when the cluster is no longer followed, with the reason, and with null when it is again. */
  turned?(reason: string | null): void;
}

export interface Runtime {
  readonly name: RuntimeName;

  /** True if the runtime only simulates workloads: a checkout may then be empty. */
  readonly pretends?: boolean;

  /**
   * Reports whether the runtime is usable now, and its limits on this machine. Never throws. A quick one may repeat what an earlier one found
   * a few minutes ago, as long as the runtime answers.
   */
  check(options?: { isQuick?: boolean }): Promise<RuntimeReport>;

  /**
   * Returns the reasons why this spec cannot run here at all, as sentences for the user that name a remedy; empty if it can. Called before
   * anything is changed.
   */
  refusals(spec: Deployable | TaskSpec): string[];

  /**
   * Makes the workload match the spec: new instances ready, routes moved to them, older instances drained and removed. A runtime without
   * `progress` returns when all that is done; a runtime with it returns once the cluster has taken the spec over. Idempotent and
   * converging: called again after a crash at any point, it continues. Throws RuntimeError `superseded` if a higher generation exists.
   * If the candidate does not become ready, it is removed, the previous release keeps running and serving, and RuntimeError `not_ready`
   * gives the reason with the last lines of its log.
   */
  submit(spec: Deployable, context: RuntimeContext): Promise<Handle>;

  /**
   * Returns what `submit` of a spec would change in the cluster, without changing anything. Variables and credentials are left out: the spec
   * need not have them. Its generation is that of the present release.
   */
  preview?(spec: WorkloadSpec, signal: AbortSignal): Promise<ObjectChange[]>;

  /**
   * Waits until a submitted or restarted release is rolled out, and reports to `context.log` what happens. Present where
   * the cluster rolls out by itself: the wait holds nothing of this process, and any process can wait for the same handle. Throws what
   * `submit` throws for a candidate that does not become ready. Aborted, it takes the candidate back and throws `aborted`, unless another
   * attempt may go on with it (`context.attempt`).
   */
  progress?(handle: Handle, context: RuntimeContext): Promise<void>;

  /** Returns the present state of the service. Cheap: watchers call it every few seconds. */
  observe(handle: Handle): Promise<Observation>;

  /**
   * Follows all services of the installation until the returned function is called. Events only wake: the state is told by `observe`, which
   * meanwhile answers from memory as long as the cluster is followed. A cluster that cannot be followed is observed as without it.
   */
  watch?(listener: WatchListener): () => void;

  /**
   * Ends all instances of the service; keeps storage, image and the data that `restart` or `submit` needs. Succeeds if already stopped. Without a
   * handle it ends what an apply left behind whose handle nobody kept.
   */
  stop(identity: WorkloadIdentity, handle: Handle | null, context: RuntimeContext): Promise<void>;

  /**
   * Replaces the processes of the same release, without a failed request if the kind of workload allows it; returns when the new ones are
   * ready. `asked` is the generation of the deployment that asks: called again with the same one, after a crash at any point, it continues
   * and restarts nothing twice.
   */
  restart(handle: Handle, asked: number, context: RuntimeContext): Promise<Handle>;

  /**
   * Removes everything of the service: instances, routes, storage, images, files, and the environment's network after its last service.
   * Removes by identity, not by `handle.data` alone: leftovers of a crashed `submit` go too. Succeeds if nothing exists.
   */
  remove(identity: WorkloadIdentity, handle: Handle | null, context: RuntimeContext): Promise<void>;

  /** Lines of all instances, of every run that the cluster keeps, oldest first; `LogOptions` narrows them. */
  logs(handle: Handle, options: LogOptions): AsyncIterable<LogLine>;

  /**
   * Returns lines of instances that were removed and whose logs are kept, oldest first. `previous` narrows them to the last run of each. Absent
   * where logs end with their instances.
   */
  formerLogs?(identity: Pick<WorkloadIdentity, 'serviceId'>, options: Omit<LogOptions, 'follow'>): Promise<LogLine[]>;

  /** Builds an image and returns the reference for `WorkloadSpec.image`. Returns at once if the image of the same `cacheKey` exists. */
  build?(spec: BuildSpec, context: BuildContext): Promise<{ image: string; cached: boolean }>;

  /**
   * Returns the credentials for pulling an image that `build` returned: null if none are needed, undefined for other images. Present where
   * built images lie in a registry: nothing of them lies on this machine, and `hasImage` asks the registry.
   */
  registryOf?(
    identity: WorkloadIdentity,
    image: string,
    signal?: AbortSignal,
  ): Promise<RegistryAccess | null | undefined>;

  /**
   * Runs a command to its end and returns how it ended. Its output goes to `context.log`, each line once, including output from before an
   * adoption (as far as it is kept: some 15 MB). Lines of one stream keep their order; both streams are merged roughly by time. The caller
   * masks secrets; files that the runtime keeps on disk are already masked. Aborted, it ends the command and throws `aborted`; called again
   * it returns that end. Throws `failed` if the command could not start, `refused` if it never can, and `failed` if the output file is
   * larger than 1 MiB. `unreachable` tells nothing of the command: the next call adopts it. The remains (its container, its record) stay
   * until `removeTasks`, so that a successor finds the end.
   */
  run?(spec: TaskSpec, context: TaskContext): Promise<TaskEnd>;

  /** Ends and removes the named executions of a service, of every generation. Storage stays. Succeeds if none exists. */
  removeTasks?(identity: Omit<WorkloadIdentity, 'generation'>, names: string[]): Promise<void>;

  /**
   * Runs a program in an instance that serves, as the instance's account, and returns how it ended. Throws RuntimeError `failed` if no
   * instance runs or the program cannot start, `refused` if no terminal is available, and `aborted` when the signal ends it.
   */
  exec?(handle: Handle, request: ExecRequest, signal: AbortSignal): Promise<ExecEnd>;

  /** Returns the TCP ports of the service's specification, for each instance that serves. */
  endpoints?(handle: Handle): Promise<InstanceEndpoints[]>;

  /**
   * Opens a TCP connection to a port of an instance. Present where the addresses of `endpoints` cannot be reached from this machine. Throws
   * RuntimeError `failed` if the instance is gone; a port on which nothing listens ends the stream with an error.
   */
  openPort?(handle: Handle, port: InstancePort, signal: AbortSignal): Promise<Duplex>;

  /**
   * Returns the address at which the environment's workloads reach this machine; creates the network if needed. If the method is absent,
   * the address is 127.0.0.1.
   */
  hostAddress?(identity: WorkloadIdentity): Promise<string>;

  /** Writes to `context.log` what a submission of the chart would change, and changes nothing. Present where charts run. */
  diff?(spec: ChartSpec, context: RuntimeContext): Promise<void>;

  /** Returns the Kubernetes services that a chart has made. */
  chartServices?(handle: Handle): Promise<ChartService[]>;

  /** Returns the nodes of the cluster. Present where a cluster is no machine of this installation. */
  nodes?(): Promise<RuntimeNode[]>;

  /** Returns CPU and memory of each running instance; empty if nothing of the service exists. */
  metrics?(handle: Handle): Promise<InstanceMetrics[]>;

  /**
   * Returns the requests to services that the gateway of the cluster has counted since a look of this runtime; null where it has no gateway
   * that tells them. Throws RuntimeError `refused` if the account may not read them.
   */
  requests?(services: Handle[], since: string | null, signal: AbortSignal): Promise<GatewayRequests | null>;

  /** Returns the states of the certificates of hosts, where the cluster itself obtains them; one for each host, in their order. */
  certificates?(hosts: string[]): Promise<CertificateStatus[]>;

  /** Returns whether an image that `build` returned still exists. Throws if that cannot be determined now. */
  hasImage?(identity: WorkloadIdentity, image: string): Promise<boolean>;

  /**
   * Removes images that were built for a service: the named ones, or all of a deleted service. Every other image stays, even if its purpose
   * is unknown. Succeeds for a missing image; RuntimeError `failed` if one is in use.
   */
  removeImages?(identity: WorkloadIdentity, images: string[] | 'all'): Promise<void>;

  /** Removes shared objects of an environment (its network) after all its services are removed. Succeeds if none exists. */
  removeEnvironment?(identity: EnvironmentIdentity): Promise<void>;

  /**
   * Removes unfinished work of processes that no longer run, and starts instances whose replacement they did not finish. Work of living
   * processes stays.
   */
  removeBroken?(): Promise<void>;

  /** Returns every workload of this installation that exists, running or stopped, for the comparison with the database. */
  list?(): Promise<FoundWorkload[]>;

  /** Measures the bytes on disk of the runtime's files. Slow: it visits every file, with low priority. */
  diskUse?(signal: AbortSignal): Promise<DiskUse>;

  /** Reads and writes whole volumes. Present where volumes are on a machine of the installation. */
  readonly volumes?: VolumeContents;

  /**
   * Ends one instance and starts it again from its image, under the same name and address: files outside of its volumes are lost. `reason`
   * becomes the reason of its last end, and the restart is counted. Returns the instance's last lines with the secret values of its
   * variables and files masked; null if it does not exist or is stopped.
   */
  replaceInstance?(
    identity: Omit<WorkloadIdentity, 'generation'>,
    instance: string,
    reason: string,
    context: RuntimeContext,
  ): Promise<LogLine[] | null>;

  /** Removes caches above their limits; nothing that runs needs them. Returns a sentence for each removed item. */
  trimCaches?(limits: CacheLimits, signal: AbortSignal): Promise<string[]>;

  /** Closes connections when the process ends; workloads continue to run. */
  close(): Promise<void>;
}

/** Access to the API server of a cluster, as a kubeconfig gives it. Texts of certificates and keys are PEM. Never for a log. */
export interface ClusterAccess {
  /** Address of the API server: `https://host:port`, perhaps with a path. */
  server: string;
  /** Name that the server's certificate is for, where it is not the host of `server`. */
  serverName: string | null;
  /** Authorities of the server's certificate; null for those of the system. */
  authorities: string | null;
  /** True if the server's certificate is not verified, as the kubeconfig asks. */
  insecure: boolean;
  /** Certificate and key of the client. */
  certificate: { certificate: string; key: string } | null;
  token: string | null;
  /** True if the operator named the address, not a user: it may be a private one. */
  isOperators?: true;
}

/** Cluster as its runtime is looked up by. */
export interface ClusterRef {
  /** Null for leftovers whose cluster was not recorded: such clusters are on a runtime of this machine. */
  id: string | null;
  /** Name of the runtime that the cluster was created for. */
  runtime: string;
}

/** Source of the runtimes of clusters, for everything that concerns one cluster or what runs there. */
export interface ClusterRuntimes {
  /**
   * Returns the runtime of a cluster. Clusters on a runtime of this machine share it; a cluster with a connection of its own has its own.
   * Throws RuntimeError if the runtime cannot be used from this machine now.
   */
  runtimeOf(cluster: ClusterRef): Promise<Runtime>;
}

/** Source of the runtimes of this machine by name, for what concerns the machine itself: its disk, its caches, what is unknown there. */
export interface MachineRuntimes {
  /** Throws RuntimeError if this machine has no such runtime. */
  onMachine(name: string): Promise<Runtime>;
}
