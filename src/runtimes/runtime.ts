/**
 * Interface between the engine and a runtime, which runs workloads (docs/contributing/engine.md, *Runtimes*). A runtime knows nothing of
 * the database or of HTTP: it receives plain data and returns plain data that another process can continue with.
 */
import type { Duplex, Readable, Writable } from 'node:stream';
import type { EventScaling } from '#kernel/event-scaling.ts';
import type { CertificateStatus } from '#runtimes/router.ts';
import { portRefusal, type PortRange } from '#kernel/port-range.ts';

/** Identity of a workload. Every external object (process, container, network, directory) carries it. */
export interface WorkloadIdentity {
  /** Id of this installation of the control plane: objects of another installation are never touched. */
  installation: string;
  organizationId: string;
  projectId: string;
  environmentId: string;
  serviceId: string;
  /**
   * Generation, which grows with each deployment (epoch of the installation × 2^32 + number): a lower one never overwrites a higher one.
   */
  generation: number;
}

export type EnvironmentIdentity = Pick<WorkloadIdentity, 'installation' | 'environmentId'>;

/** Bytes on disk by purpose. */
export interface DiskUse {
  images: number;
  volumes: number;
  /** Trees and writable layers of instances, with their logs. */
  workloads: number;
  /** Layers that an engine keeps for later builds; no service owns them. */
  buildCache: number;
  /** Disk use of the services. A measurement that runs out of time lacks some items: those keep their last known values. */
  items: DiskItem[];
}

/** Disk use of one item of a service: an image, a volume, an instance, an execution or a log. */
export interface DiskItem {
  kind: DiskItemKind;
  serviceId: string;
  /** Reference of the image, id of the storage, or name of the instance or execution. */
  name: string;
  bytes: number;
  /** True if the item was measured completely; otherwise `bytes` is a lower bound. */
  isWhole: boolean;
}

/** Kind of item. `instance` and `task` are the files that an instance or an execution wrote outside of its volumes and its log. */
export type DiskItemKind = 'image' | 'volume' | 'instance' | 'task' | 'log';

/** Limits of the caches of a runtime: build layers, and pulled images that nothing uses any longer. */
export interface CacheLimits {
  /** Bytes that the build cache may take; null for no limit. */
  buildCacheBytes: number | null;
  /** References of pulled images that stay although nothing runs from them. */
  keptImages: readonly string[];
  /** Minimum age in seconds before a pulled image may be removed. */
  pulledSeconds: number;
}

type PortProtocol = 'HTTP' | 'GRPC' | 'TCP' | 'UDP';

export interface WorkloadPort {
  id: string;
  name: string;
  /** Port the workload listens on. */
  internalPort: number;
  /** Port it is published on when `publiclyAccessible` and TCP or UDP; HTTP and GRPC go through the proxy instead. */
  externalPort: number;
  protocol: PortProtocol;
  publiclyAccessible: boolean;
  isDefault: boolean;
}

/** Returns the TCP and UDP ports that are published on the machine, each by one service only. */
export const publishedPorts = <P extends Pick<WorkloadPort, 'protocol' | 'publiclyAccessible'>>(
  ports: P[],
): (P & { protocol: 'TCP' | 'UDP' })[] =>
  ports.filter(
    (port): port is P & { protocol: 'TCP' | 'UDP' } =>
      port.publiclyAccessible && (port.protocol === 'TCP' || port.protocol === 'UDP'),
  );

/** Returns a sentence for each published port outside of the operator's range; a null range allows every port. */
export function rangeRefusals({ ports }: Pick<WorkloadSpec, 'ports'>, range: PortRange | null): string[] {
  if (range === null) return [];
  return publishedPorts(ports).flatMap(({ externalPort }) => {
    const refusal = portRefusal(range, externalPort);
    return refusal === null ? [] : [`Nothing can be published there: ${refusal}.`];
  });
}

export type ProbeCheck =
  | { type: 'http'; port: number; path: string; scheme: 'HTTP' | 'HTTPS' }
  | { type: 'tcp'; port: number; host: string | null }
  | { type: 'exec'; command: string[] }
  | { type: 'grpc'; port: number; service: string | null };

/** A health check with Kubernetes' meaning. All times in seconds. */
export interface Probe {
  check: ProbeCheck;
  initialDelaySeconds: number;
  periodSeconds: number;
  timeoutSeconds: number;
  successThreshold: number;
  failureThreshold: number;
}

/** A host name that the proxy answers for, and the port of the workload that it leads to. */
export interface Route {
  /** Lower-case host name without a port: `app-z1a2b3c4d.localhost` or a custom domain. */
  host: string;
  portId: string;
  /** True if the proxy obtains a certificate for the host; absent is false. */
  certificate?: boolean;
}

/** Access to a registry. Sent with each request and never written to a file. */
export interface RegistryAccess {
  /** Host and port as they stand in image references (`registry.example.com:5000`, `docker.io`). */
  host: string;
  username: string;
  password: string;
}

/** Annotations for some kinds of objects, in Kubernetes' terms: `PODS`, `DEPLOYMENTS`, `INGRESS`, … */
export interface Annotations {
  scopes: string[];
  values: Record<string, string>;
}

/** Program that a runtime starts, as a service or as an execution, with its variables expanded. */
export interface ProgramSpec {
  identity: WorkloadIdentity;
  /** Human name of the service, for labels and logs only. */
  displayName: string;
  /** Result of `build`, or a registry reference pinned by digest (`registry.example.com/name@sha256:…`), which is pulled if absent. */
  image: string;
  /** Credentials for the registry of `image`; null for built and public images. */
  registry: RegistryAccess | null;
  /** Replaces the image's entry point, one argument per element; empty keeps it. */
  entrypoint: string[];
  /** Replaces the image's command; empty keeps it. */
  arguments: string[];
  environment: Record<string, string>;
  /** File variables, mounted read-only. `path` is absolute. */
  files: { path: string; content: string }[];
  resources: { cpuMilli: number; memoryMib: number };
  /** Volumes that survive redeploys. A workload with storage is recreated: old gone, then new. */
  storage: { id: string; mountPath: string; sizeGib: number }[];
  /** Labels for the objects that the runtime makes, besides its own. */
  labels: Record<string, string>;
  /** Annotations for the objects that the runtime makes, each set on the kinds of objects that its scopes name; later ones win. */
  annotations?: Annotations[];
  /** Seconds that an instance may take to end after SIGTERM. */
  gracePeriodSeconds: number;
  /**
   * Secret values of 4 characters or more: they must not appear in anything that a runtime writes to a log (docs/contributing/rules.md 36).
   */
  secrets: string[];
}

/** Places of the instances of a service within a cluster of several machines. */
export interface Placement {
  /** Labels that a machine must have. */
  nodeLabels: Record<string, string>;
  /** True if no two instances of a release may be on one machine; otherwise they are spread as far as there is room. */
  isApart: boolean;
  zones: 'Disabled' | 'ScheduleAnyway' | 'DoNotSchedule';
}

/** Long-running service with all its settings. */
export interface WorkloadSpec extends ProgramSpec {
  type: 'workload';
  /** Internal host name by which siblings of the environment reach it (`app-z1a2b3c4d`, docs/contributing/rules.md 37). */
  hostname: string;
  ports: WorkloadPort[];
  readiness: Probe | null;
  liveness: Probe | null;
  /** Number of instances: `min` run; `max` is for runtimes that scale by load. 0 runs none. */
  instances: { min: number; max: number };
  /** Use, in percent of what an instance requests, at which a runtime that scales by load adds instances; null for no such limit. */
  scaling?: { cpuPercent: number; memoryPercent: number | null };
  /** Scaling by events in place of that by load; needs the feature `keda`. */
  eventScaling?: EventScaling;
  routes: Route[];
  placement?: Placement;
  /** True if instances may write to their volumes only. */
  hasReadOnlyRoot?: boolean;
  /** Seconds that a request from outside may take, where the way into the cluster can limit that; 0 for no limit. */
  requestSeconds?: number;
  /** Seconds that `submit` waits until every instance is ready. */
  readyTimeoutSeconds: number;
}

/** Helm chart with its values, as the program `helm` takes them. */
export interface ChartSpec {
  type: 'helm';
  identity: WorkloadIdentity;
  /** Human name of the service, for labels and logs only. */
  displayName: string;
  /** Name of the release (`helm-z1a2b3c4d`). */
  hostname: string;
  /** Name of the chart for people: `shop 1.4.0`. */
  title: string;
  /** Folder or archive of the chart on this machine; empty before it was fetched. */
  chart: string;
  /** Private folder on this machine for files that helm needs; empty before the chart was fetched. */
  folder: string;
  /** Files of values in YAML with variables replaced; a later one counts more. They may hold secrets. */
  values: { name: string; content: string }[];
  /** Further options of `helm upgrade`, none of which names a file, a program or another cluster. */
  arguments: string[];
  /** True if the chart may have objects outside of the environment's namespace. */
  allowClusterWide: boolean;
  /** Seconds that the objects of the chart have to get ready. */
  timeoutSeconds: number;
  ports: ChartPort[];
  routes: Route[];
  /** Secret values, as in `ProgramSpec`. */
  secrets: string[];
  /** Sentences about the configuration for the deployment's log. */
  warnings: string[];
}

/** Port of a Kubernetes service of a chart, which is named or selected by its labels. */
export interface ChartPort {
  id: string;
  internalPort: number;
  protocol: 'HTTP' | 'GRPC';
  service: string | { key: string; value: string }[];
}

/** Workload or chart that a service deploys. */
export type Deployable = WorkloadSpec | ChartSpec;

/** Kubernetes service that a chart made. */
export interface ChartService {
  name: string;
  type: string;
  ports: { name?: string; port: number }[];
  selectors: { key: string; value: string }[];
}

/** Destination that a command may connect to. */
export interface EgressRule {
  /** Lower-case host name, `*.example.com` for all below it, `*` for every host, or an address (without brackets). */
  host: string;
  /** Port; null for every port. */
  port: number | null;
  /** True if the host may have a private, local or reserved address: only for hosts that the operator named. */
  isPrivate: boolean;
}

/** HTTP(S) destinations of a command. A proxy outside of its sandbox enforces them and is the command's only route to a network. */
export interface Egress {
  rules: EgressRule[];
  /** Networks (CIDR) that listed hosts may be in although private. */
  allowedPrivateAddresses: string[];
}

/** Command that runs to its end: an execution of a job, or a Terraform command. Siblings of the environment are reachable by name. */
export interface TaskSpec extends ProgramSpec {
  /** Tells commands from what stays deployed. */
  type?: undefined;
  /**
   * Name of the execution, unique within the service, `[a-z0-9-]{1,40}`: the same generation and name are the same execution. An execution
   * that exists, running or ended, is adopted, whatever else the spec says; none starts twice until `removeTasks` removed it. Generations
   * do not supersede each other here.
   */
  name: string;
  /**
   * Time limit in seconds from the start. The command is then stopped as by `stop` (SIGTERM, after the grace period SIGKILL, with its
   * children). `TaskEnd.reason` is then `timeout`, whatever exit status the command returned. While no process waits for the command, it
   * may run longer.
   */
  timeoutSeconds: number;
  /**
   * Absolute path of a file whose content is read as UTF-8 after exit status 0 (docs/contributing/engine.md, *Snapshot, resolution, plan*);
   * null reads none. The folder of the file exists when the command starts, and the command's account may write there.
   */
  outputPath: string | null;
  /**
   * Restricts the command to these destinations: siblings, this machine and all other protocols are unreachable. The variables HTTP_PROXY
   * and HTTPS_PROXY name the proxy. The log reports refused connections. The proxy belongs to this execution alone, survives this process
   * and ends with the execution. Needs the feature `egress`.
   */
  egress?: Egress;
  /** Local folders whose files are copied to `path` before the command starts; its account may change them. */
  folders?: { path: string; directory: string }[];
  /** Number of graphics processors. */
  gpus?: number;
}

/** Context of `run`. */
export interface TaskContext extends RuntimeContext {
  /** Fills the spec's `folders`, or refuses the command. Called before the command starts, and not for an adopted execution. */
  prepare?(): Promise<void>;
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

/** Data by which another process finds the workload again. JSON, at most a few KB, without secrets. */
export interface Handle {
  /** Format of `data`, numbered by the runtime, which reads the present format and the one before. */
  format: number;
  runtime: string;
  identity: WorkloadIdentity;
  data: Record<string, unknown>;
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

/** Container image to build from a checked-out repository. */
export interface BuildSpec {
  identity: WorkloadIdentity;
  /** Folder of the checkout. The build must not write to it, nor read outside of it (links are followed within it only). */
  directory: string;
  /** Build context: a folder relative to the checkout (`/` or `.` for the whole). */
  rootPath: string;
  /** Path of the Dockerfile relative to `rootPath`. */
  dockerfilePath: string;
  targetStage: string | null;
  arguments: Record<string, string>;
  /** Key of the build: the same key with the same content needs no second build. */
  cacheKey: string;
  /** Time limit in seconds (setting `build.timeout_max_sec`). */
  timeoutSeconds: number;
  resources: { cpuMilli: number; memoryMib: number };
  secrets: string[];
}

/**
 * Attempt at a deployment. Several may follow each other with the same generation. An earlier attempt may continue for a while after a
 * later one has begun: its process was suspended, or a call hung.
 */
export interface Attempt {
  /**
   * Number that grows with each attempt at the deployment. Objects carry it: a lower attempt changes nothing once a higher one has begun.
   */
  number: number;
  /** Returns whether this attempt may still act: false once its lease is lost, or its caller has stopped waiting for it. */
  holds(): boolean;
}

/** Context of every method that changes something. */
export interface RuntimeContext {
  /** Signal that aborts when the deployment is cancelled, the lease is lost or the deadline has passed: end child processes, then throw. */
  signal: AbortSignal;
  /** Attempt that calls; absent if no other attempt can follow. A superseded attempt cleans up nothing: its successor may use it. */
  attempt?: Attempt;
  /** Writes a line for people to the deployment's log. The caller masks secrets. */
  log(line: string): void;
}

/** Image that a build may start from or copy files from, as its registry resolved it for the organization. */
export interface BaseImage {
  /** Reference with its digest, or the name of an image on the engine that the operator shares with every organization. */
  reference: string;
  /** ONBUILD instructions that the image adds to images built upon it. */
  onBuild: string[];
  /** Credentials for the image's registry; null for public images and for images on the engine. */
  registry: RegistryAccess | null;
}

/** Context of `build`. */
export interface BuildContext extends RuntimeContext {
  /**
   * Asks the organization's registries for an image of a platform (`linux/amd64`). Throws an error for people if the image may not be used.
   */
  resolveImage(name: string, platform: string): Promise<BaseImage>;
  /** Throws an error for people if tenants may not make a builder fetch from the host. */
  checkHost(host: string): Promise<void>;
}

/** Optional feature of a runtime; services list the features that they need (`service.requires`). */
export type RuntimeFeature =
  | 'builds'
  | 'registry-images'
  | 'machine-programs'
  | 'tasks'
  | 'host-address'
  | 'database-backups'
  | 'egress'
  | 'helm'
  | 'keda'
  | 'older-databases';

/** Features that a runtime can have. Those of a cluster are these without what its last check found missing (`featuresOf`). */
export const RUNTIME_FEATURES: Record<Runtime['name'], readonly RuntimeFeature[]> = {
  host: ['builds', 'machine-programs', 'tasks', 'host-address', 'database-backups', 'egress'],
  docker: ['builds', 'registry-images', 'tasks', 'host-address', 'database-backups', 'egress'],
  kubernetes: ['builds', 'registry-images', 'tasks', 'database-backups', 'helm', 'keda'],
  fake: [
    'builds',
    'registry-images',
    'tasks',
    'host-address',
    'database-backups',
    'egress',
    'helm',
    'keda',
    'older-databases',
  ],
};

/** Name of the runtime that runs programs of the machine instead of images. */
export const MACHINE_RUNTIME = 'host' satisfies Runtime['name'];

/** Findings of a check about what a runtime can do. Stored with the cluster: requests are judged by it before anything is queued. */
export interface Capabilities {
  /** Engine, version and mode (`Docker Engine 28.2`, `host, namespaces`). */
  description: string;
  /** Limits of this machine or cluster, with the remedy, a sentence each. */
  limits: string[];
  /** Features of the runtime that do not work now, each with its remedy, a sentence for people. */
  missing?: Partial<Record<RuntimeFeature, string>>;
}

export interface RuntimeReport extends Capabilities {
  ok: boolean;
}

/** Returns the sentence with which a runtime refuses a chart. */
export const noCharts = (runtime: Runtime['name']): string =>
  `The runtime ${runtime} runs no Helm charts: move the service to an environment of a Kubernetes cluster.`;

/** Returns a workload. Throws RuntimeError `refused` for a chart, for runtimes that run none. */
export function requireWorkload(deployable: Deployable, runtime: Runtime['name']): WorkloadSpec {
  switch (deployable.type) {
    case 'workload':
      return deployable;
    case 'helm':
      throw new RuntimeError('refused', noCharts(runtime));
  }
}

/** Returns the features of a cluster. Capabilities are null until the cluster was checked: it then has all that its runtime can have. */
export function featuresOf(runtime: string, capabilities: Pick<Capabilities, 'missing'> | null): RuntimeFeature[] {
  const all = RUNTIME_FEATURES[runtime as Runtime['name']] ?? [];
  return all.filter((feature) => capabilities?.missing?.[feature] === undefined);
}

/** Receiver of a watch. */
export interface WatchListener {
  /** Called for a service that may have changed. */
  changed(serviceId: string): void;
  /** Called when the cluster is no longer followed, with the reason, and with null when it is again. */
  turned?(reason: string | null): void;
}

export interface Runtime {
  readonly name: 'host' | 'docker' | 'kubernetes' | 'fake';

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

/** Number of log lines that an error carries of an instance that did not become ready. */
export const LAST_LINES = 200;

export type RuntimeErrorCode =
  'not_ready' | 'superseded' | 'build_failed' | 'refused' | 'unreachable' | 'aborted' | 'failed';

/** Failure of a runtime's method. `message` is for the user who reads the deployment's log. */
export class RuntimeError extends Error {
  readonly code: RuntimeErrorCode;
  /** Last log lines of an instance that was removed because of the error, the oldest first; not masked. */
  lastLines?: readonly LogLine[];

  /** Returns the same error with the instance's log lines. */
  withLines(lines: readonly LogLine[]): this {
    this.lastLines = lines;
    return this;
  }

  constructor(code: RuntimeErrorCode, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'RuntimeError';
    this.code = code;
  }
}

/** Error of a call that was ended by its signal. */
export const cancelled = (cause: unknown): RuntimeError => new RuntimeError('aborted', 'It was cancelled.', cause);

/** Throws RuntimeError `aborted` where the signal has ended the call. */
export function throwIfCancelled(signal: AbortSignal): void {
  if (signal.aborted) throw cancelled(signal.reason);
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
