/**
 * What the engine asks of a place where workloads run (docs/contributing/engine.md, *Runtimes*). A runtime knows nothing of the
 * database or of HTTP: it gets plain data, and what it answers is plain data that another process can go on with.
 */
import type { Readable, Writable } from 'node:stream';
import { portRefusal, type PortRange } from '#kernel/port-range.ts';

/** Who a workload is. Every external object (process, container, network, directory) carries it. */
export interface WorkloadIdentity {
  /** Id of this installation of the control plane: objects of another installation are never touched. */
  installation: string;
  organizationId: string;
  projectId: string;
  environmentId: string;
  serviceId: string;
  /** Grows with each deployment (epoch of the installation × 2^32 + number): a lower one never overwrites a higher one. */
  generation: number;
}

export type EnvironmentIdentity = Pick<WorkloadIdentity, 'installation' | 'environmentId'>;

/** Bytes on disk by what they are for. */
export interface DiskUse {
  images: number;
  volumes: number;
  /** Trees and writable layers of instances, with their logs. */
  workloads: number;
  /** Layers that an engine keeps for later builds; they belong to no service. */
  buildCache: number;
  /** What services take. Where a measurement ran out of time some are missing: they keep what was known of them. */
  items: DiskItem[];
}

/** Disk that one thing of a service takes. */
export interface DiskItem {
  kind: DiskItemKind;
  serviceId: string;
  /** Reference of the image, id of the storage, name of the instance or of the execution. */
  name: string;
  bytes: number;
  /** Whether all of it was seen; else it takes at least `bytes`. */
  isWhole: boolean;
}

/** `instance` and `task` are what an instance or an execution wrote besides its volumes and its log. */
export type DiskItemKind = 'image' | 'volume' | 'instance' | 'task' | 'log';

/** Limits of what a runtime keeps to be faster, and no longer needs. */
export interface CacheLimits {
  /** Bytes that the build cache may take; null for no limit. */
  buildCacheBytes: number | null;
  /** References of pulled images that stay although nothing runs from them. */
  keptImages: readonly string[];
  /** Seconds that a pulled image stays in any case. */
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

/** TCP and UDP ports that are published on the machine, each by one service only. */
export const publishedPorts = <P extends Pick<WorkloadPort, 'protocol' | 'publiclyAccessible'>>(
  ports: P[],
): (P & { protocol: 'TCP' | 'UDP' })[] =>
  ports.filter(
    (port): port is P & { protocol: 'TCP' | 'UDP' } =>
      port.publiclyAccessible && (port.protocol === 'TCP' || port.protocol === 'UDP'),
  );

/** Published ports of a workload that are outside of the operator's range, a sentence each; null stands for no range. */
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
  /** Whether the proxy obtains a certificate for the host; absent is false. */
  certificate?: boolean;
}

/** How a runtime gets at a registry. It goes with each request and never into a file. */
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

/** What a runtime starts, whether it runs for ever or to an end: variables expanded. */
export interface ProgramSpec {
  identity: WorkloadIdentity;
  /** Human name of the service, for labels and logs only. */
  displayName: string;
  /** What `build` answered, or a registry reference pinned by digest (`registry.example.com/name@sha256:…`), pulled where it isn't there. */
  image: string;
  /** Where `image` is of a registry that wants to know who asks; null for built and public ones. */
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
  /** Labels to carry on what the runtime makes, besides its own. */
  labels: Record<string, string>;
  /** Annotations to carry likewise, each set on the kinds of objects that its scopes name; later ones win. */
  annotations?: Annotations[];
  /** How long an instance may take to end after SIGTERM, in seconds. */
  gracePeriodSeconds: number;
  /** Secret values of 4 characters or more: must not appear in anything a runtime writes to a log (docs/contributing/rules.md 36). */
  secrets: string[];
}

/** A long-running service with everything that it needs. */
export interface WorkloadSpec extends ProgramSpec {
  /** Internal host name by which siblings of the environment reach it (`app-z1a2b3c4d`, docs/contributing/rules.md 37). */
  hostname: string;
  ports: WorkloadPort[];
  readiness: Probe | null;
  liveness: Probe | null;
  /** As many instances as `min` run; `max` is for runtimes that scale by load. 0 means that none runs. */
  instances: { min: number; max: number };
  routes: Route[];
  /** How long `apply` waits until every instance is ready, in seconds. */
  readyTimeoutSeconds: number;
}

/** A place that a command may connect to. */
export interface EgressRule {
  /** Lower-case host name, `*.example.com` for all below it, `*` for every host, or an address (without brackets). */
  host: string;
  /** Null for all. */
  port: number | null;
  /** Whether it may have a private, local or reserved address: only what the operator named. */
  isPrivate: boolean;
}

/** What a command reaches over HTTP(S) through a proxy outside of its sandbox, which is its only way out. */
export interface Egress {
  rules: EgressRule[];
  /** Networks (CIDR) that listed hosts may be in although private. */
  allowedPrivateAddresses: string[];
}

/** A command that runs to its end: an execution of a job, a command of Terraform. It reaches siblings of the environment by name. */
export interface TaskSpec extends ProgramSpec {
  /**
   * Names this execution among all of the service, `[a-z0-9-]{1,40}`: the same generation and name are the same execution. One that is there
   * already, running or ended, is adopted, whatever else the spec says now; none is begun twice until `removeTasks` took it away. Generations
   * do not supersede each other here.
   */
  name: string;
  /**
   * Seconds after its beginning at which it is ended as `stop` does it (SIGTERM, after the grace period SIGKILL, its children with it);
   * `TaskEnd.reason` is `timeout` then, whatever it answered to the signal. While nobody waits for it, it may run longer.
   */
  timeoutSeconds: number;
  /**
   * Absolute path of a file whose content is read as UTF-8 after exit status 0 (docs/contributing/engine.md, *Snapshot, resolution, plan*); null reads none.
   * Its folder is there when the command begins, and whoever runs in it may write there.
   */
  outputPath: string | null;
  /**
   * With it nothing else is reached, siblings and this machine included, by whatever protocol; the variables HTTP_PROXY and HTTPS_PROXY name
   * the way out. Refused connections are told in the log. The proxy is of this execution alone, lives as long as it does, whatever
   * becomes of this process, and goes with it. Needs the feature `egress`.
   */
  egress?: Egress;
  /** Local folders whose files are put into it before it begins, where whoever runs in it may change them. */
  folders?: { path: string; directory: string }[];
  /** Graphics processors that it gets. */
  gpus?: number;
}

/** What `run` gets besides. */
export interface TaskContext extends RuntimeContext {
  /** Puts the spec's `folders` in place. Called before the command is begun, and not where one is adopted. */
  prepare?(): Promise<void>;
}

/** How an execution ended. */
export interface TaskEnd {
  /** `lost`: it was begun and its end can't be known (a reboot, or it was removed while it ran): it must not be run again unasked. */
  reason: 'exited' | 'timeout' | 'lost';
  /** Exit status, null where a signal ended it or nothing is known, and where it was ended by us, whatever it answered to that. */
  exitCode: number | null;
  /** Name of the signal that ended it (`SIGKILL`; that it was for want of memory says a line of the log). */
  signal: string | null;
  /** ISO 8601 with milliseconds. */
  startedAt: string;
  endedAt: string;
  /** Content of the file at `outputPath`; null without one, and after any end but a good one. */
  output: string | null;
}

/** A program that runs beside a workload, in one of its instances. */
export interface ExecRequest {
  /** Program and arguments: no shell, never a secret. */
  command: string[];
  /** Besides the variables of the instance; secrets go here. */
  environment: Record<string, string>;
  /** Its standard input, read to the end; it is empty without. */
  stdin?: Readable;
  /** Takes its standard output as it comes, no faster than it is taken. It is not ended; an abort destroys it. */
  stdout: Writable;
  /** Takes its standard error likewise; without it only the end is kept (`ExecEnd.stderr`). */
  stderr?: Writable;
  /** Name of the instance that it runs in; any that serves without. */
  instance?: string;
  /** It runs on a terminal of this size, to whose output standard error belongs. */
  terminal?: { columns: number; rows: number };
}

/** How this process reaches the ports of an instance that serves. */
export interface InstanceEndpoints {
  instance: string;
  ports: { internalPort: number; address: string; port: number }[];
}

export interface ExecEnd {
  exitCode: number;
  /** The last 4 KB of its standard error. */
  stderr: string;
}

/** Everything that another process needs to find the workload again. JSON, at most a few KB, without secrets. */
export interface Handle {
  /** Format of `data`, of the runtime's own counting; it reads its present one and the one before. */
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
  /** `absent`: nothing of the service is there; `partial`: fewer instances are ready than wanted. */
  state: 'absent' | 'stopped' | 'partial' | 'running' | 'failed';
  /** Generation that serves, null when nothing does. */
  generation: number | null;
  instances: InstanceObservation[];
  /** What a person should know (why it is partial or failed), in a sentence; empty when all is well. */
  message: string;
}

/** A workload that is there, found by its identity: whoever asks need not have known of it. */
export interface FoundWorkload {
  /** Its generation is the one that serves, else the highest of which something is there. */
  identity: WorkloadIdentity;
  displayName: string;
  /** `running`: at least one process of it lives, whether it is ready or not. */
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

export interface InstanceMetrics {
  instance: string;
  cpuMilli: number;
  memoryBytes: number;
  /** What it may take at most; where the machine cannot limit it, what its service asks for. */
  cpuLimitMilli: number;
  memoryLimitBytes: number;
  /** ISO 8601; null where it is not known. */
  startedAt: string | null;
  restarts: number;
  at: string;
}

/** A container image to be made from a checked-out repository. */
export interface BuildSpec {
  identity: WorkloadIdentity;
  /** Folder of the checkout. It is read only; nothing outside it may be read (links are followed within it only). */
  directory: string;
  /** Folder inside the checkout, relative, that is the build context (`/` or `.` for the whole). */
  rootPath: string;
  /** Path of the Dockerfile relative to `rootPath`. */
  dockerfilePath: string;
  targetStage: string | null;
  arguments: Record<string, string>;
  /** Names what is built: the same key with the same content needs no second build. */
  cacheKey: string;
  /** Seconds (setting `build.timeout_max_sec`). */
  timeoutSeconds: number;
  resources: { cpuMilli: number; memoryMib: number };
  secrets: string[];
}

/**
 * Attempt at a deployment. Several may follow each other with the same generation, and an earlier one may go on for a while after a later
 * one has begun: it was frozen, or a call of its hung.
 */
export interface Attempt {
  /** Grows with each attempt at the deployment. What is made carries it: a lower one touches nothing where a higher one has begun. */
  number: number;
  /** Whether this attempt still acts: false once its claim is lost, or its caller has given up waiting for it. */
  holds(): boolean;
}

/** What every verb gets besides its data. */
export interface RuntimeContext {
  /** Aborted when the deployment is cancelled, the lease is lost or the deadline is over: end children, then throw. */
  signal: AbortSignal;
  /** Absent where no other attempt can follow. An attempt that does not hold any more cleans up nothing: its successor may use it. */
  attempt?: Attempt;
  /** A line for the people who read the deployment's log. Masking is done by the caller. */
  log(line: string): void;
}

/** Image that a build may start or take files from, as a registry answered it to the organization. */
export interface BaseImage {
  /** Reference with its digest, or the name of an image on the engine that the operator shares with everybody. */
  reference: string;
  /** Instructions that it adds to what is built upon it. */
  onBuild: string[];
  /** How its registry is read; null where anybody may, and for images on the engine. */
  registry: RegistryAccess | null;
}

/** What `build` gets besides. */
export interface BuildContext extends RuntimeContext {
  /** Asks the organization's registries for an image of a platform (`linux/amd64`). Throws an error for people where it may not be used. */
  resolveImage(name: string, platform: string): Promise<BaseImage>;
  /** Throws an error for people where tenants may not have a builder fetch from a host. */
  checkHost(host: string): Promise<void>;
}

/** What not every runtime can do; services say what they need of it (`service.requires`). */
export type RuntimeFeature =
  'registry-images' | 'machine-programs' | 'tasks' | 'egress' | 'kubernetes' | 'keda' | 'older-databases';

/** What each runtime can do, whatever machine it is on: requests are refused by it before anything is queued. */
export const RUNTIME_FEATURES: Record<Runtime['name'], readonly RuntimeFeature[]> = {
  host: ['machine-programs', 'tasks', 'egress'],
  docker: ['registry-images', 'tasks', 'egress'],
  kubernetes: ['registry-images', 'tasks', 'kubernetes', 'keda'],
  fake: ['registry-images', 'tasks', 'egress', 'kubernetes', 'keda', 'older-databases'],
};

/** Name of the runtime that runs programs of the machine instead of images. */
export const MACHINE_RUNTIME = 'host' satisfies Runtime['name'];

export interface RuntimeReport {
  ok: boolean;
  /** Which engine, version and mode was found (`Docker Engine 28.2`, `host, namespaces`). */
  description: string;
  /** What doesn't work here and what would mend it, a sentence each. */
  limits: string[];
}

export interface Runtime {
  readonly name: 'host' | 'docker' | 'kubernetes' | 'fake';

  /** Whether it runs nothing of what it is given: a checkout may be empty then. */
  readonly pretends?: boolean;

  /** Whether the runtime can be used now, and what it can't do here. Never throws. */
  check(): Promise<RuntimeReport>;

  /**
   * Why this spec can't run here at all, as sentences for the user that say what would help; empty if it can.
   * Asked before anything is changed.
   */
  refusals(spec: WorkloadSpec | TaskSpec): string[];

  /**
   * Makes the spec true and waits until it is: new instances ready, routes moved to them, older ones drained and gone.
   * Idempotent and converging: called again after a crash in any place it goes on. Throws RuntimeError `superseded`
   * when a higher generation is there. If the candidate does not get ready, it is removed, the previous release keeps
   * running and serving, and RuntimeError `not_ready` says why with the last lines of its log.
   */
  apply(spec: WorkloadSpec, context: RuntimeContext): Promise<Handle>;

  /** What runs of the service. Cheap: it is asked by watchers every few seconds. */
  observe(handle: Handle): Promise<Observation>;

  /** Ends all instances, keeps storage, image and what `restart` or `apply` needs. Stopping what is stopped is done. */
  stop(handle: Handle, context: RuntimeContext): Promise<void>;

  /**
   * New processes of the same release, without a failed request where the kind of workload allows it. Ready when it returns. `asked` is the
   * generation of the deployment that asks: called again with the same one, after a crash in any place, it goes on and restarts nothing twice.
   */
  restart(handle: Handle, asked: number, context: RuntimeContext): Promise<Handle>;

  /**
   * Removes everything of the service: instances, routes, storage, images, files, and the environment's network when it was
   * the last in it. By identity, not by `handle.data` alone: what a crashed `apply` left behind goes too. Absent is done.
   */
  remove(identity: WorkloadIdentity, handle: Handle | null, context: RuntimeContext): Promise<void>;

  /** Lines of all instances, oldest first: the last `tail`, then with `follow` the new ones until `signal` is aborted. */
  logs(handle: Handle, options: { tail: number; follow: boolean; signal: AbortSignal }): AsyncIterable<LogLine>;

  /** Builds an image; answers the reference for `WorkloadSpec.image`. Same `cacheKey` still there: answers at once. */
  build?(spec: BuildSpec, context: BuildContext): Promise<{ image: string; cached: boolean }>;

  /**
   * Runs a command to its end and answers how it ended; what it writes goes to `context.log`, line by line and each once, also what it wrote
   * before it was adopted (as far as it is kept: some 15 MB). Lines come in the order of their stream; those of both streams roughly by time.
   * Masking is done by the caller; what a runtime keeps on disk itself is masked there already.
   * Aborted, it ends the command and throws `aborted`; called again it tells that end. Throws where it could not be begun (`failed`, and
   * `refused` where it never can be), and `failed` where the output file is larger than 1 MiB. `unreachable` says nothing of the command:
   * called again it is adopted. What is left of it (its container, its record) stays until `removeTasks`, so that a successor finds its end.
   */
  run?(spec: TaskSpec, context: TaskContext): Promise<TaskEnd>;

  /** Ends and removes executions of a service, of whatever generation: all of them, or those of these names. Storage stays. Absent is done. */
  removeTasks?(identity: Omit<WorkloadIdentity, 'generation'>, names: string[] | 'all'): Promise<void>;

  /**
   * Runs a program in an instance that serves, as its account, and answers how it ended. Throws RuntimeError `failed` where none runs, or
   * the program can't be started, `refused` where there is no terminal to be had; `aborted` when the signal ends it.
   */
  exec?(handle: Handle, request: ExecRequest, signal: AbortSignal): Promise<ExecEnd>;

  /** The ports of a service's specification that speak TCP, of each instance that serves. */
  endpoints?(handle: Handle): Promise<InstanceEndpoints[]>;

  /**
   * Address of this machine under which what runs in the environment reaches it; made where it isn't there yet. Without it that is 127.0.0.1.
   */
  hostAddress?(identity: WorkloadIdentity): Promise<string>;

  /** CPU and memory of each instance that runs now; none where nothing of the service is there. */
  metrics?(handle: Handle): Promise<InstanceMetrics[]>;

  /** Whether an image that `build` answered is still here. Throws where that can't be known now. */
  hasImage?(identity: WorkloadIdentity, image: string): Promise<boolean>;

  /**
   * Removes images that were built for a service: those named, or all of a service that is gone. What isn't named stays, also if
   * nobody knows what it is for. One that isn't there is done; RuntimeError `failed` where one is still in use.
   */
  removeImages?(identity: WorkloadIdentity, images: string[] | 'all'): Promise<void>;

  /** Removes what the services of an environment shared (its network). All of them are removed; absent is done. */
  removeEnvironment?(identity: EnvironmentIdentity): Promise<void>;

  /** Removes what processes of ours that are gone left half made. What another process still makes is left alone. */
  removeBroken?(): Promise<void>;

  /** Every workload of this installation that is there, running or stopped. For people who compare it with the database. */
  list?(): Promise<FoundWorkload[]>;

  /** Bytes on disk of what the runtime made here. Slow: it looks at every file, with low priority. */
  diskUse?(signal: AbortSignal): Promise<DiskUse>;

  /**
   * Ends one instance and starts it anew from its image, under its name and its address: what it wrote besides its volumes is gone. `reason`
   * becomes the reason of its last end, and it counts as a restart. Returns the last lines that it wrote, secret values
   * of its variables masked; null where it is not there, or is stopped.
   */
  replaceInstance?(
    identity: Omit<WorkloadIdentity, 'generation'>,
    instance: string,
    reason: string,
    context: RuntimeContext,
  ): Promise<LogLine[] | null>;

  /** Removes what is kept to be faster above its limits. Nothing that runs needs it. Returns what was removed, a sentence each. */
  trimCaches?(limits: CacheLimits, signal: AbortSignal): Promise<string[]>;

  /** Called when the process ends: closes connections; what runs stays up. */
  close(): Promise<void>;
}

/** Lines of an instance that did not get ready that an error carries. */
export const LAST_LINES = 200;

export type RuntimeErrorCode =
  'not_ready' | 'superseded' | 'build_failed' | 'refused' | 'unreachable' | 'aborted' | 'failed';

/** Why a verb did not do its work. `message` is for the user who reads the deployment's log. */
export class RuntimeError extends Error {
  readonly code: RuntimeErrorCode;
  /** What an instance wrote last that is removed because of the error, the oldest first; not masked. */
  lastLines?: readonly LogLine[];

  /** The same error with what the instance wrote. */
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

/** Source of the runtimes of this machine. */
export interface RuntimeProvider {
  /** Throws RuntimeError where this machine has no such runtime. */
  get(name: string): Promise<Runtime>;
}
