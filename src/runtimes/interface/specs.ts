/** Specifications that a runtime carries out. */
import type { EventScaling } from '#kernel/event-scaling.ts';
import { portRefusal, type PortRange } from '#kernel/port-range.ts';
import type { WorkloadIdentity } from './identity.ts';

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
   * True if the image has `sh`, `cat`, `wc` and `sleep`: a cluster that reads nothing from ended containers then has a second one keep the
   * output file, whose folder must be no other mount. Without it such a cluster takes smaller files only.
   */
  hasShell?: boolean;
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
  /** Values of the secrets that the Dockerfile mounts, by their ids. No layer, history or log of an image may have them. */
  secretMounts: Record<string, string>;
  /** Key of the build: the same key with the same content needs no second build. */
  cacheKey: string;
  /** Time limit in seconds (setting `build.timeout_max_sec`). */
  timeoutSeconds: number;
  resources: { cpuMilli: number; memoryMib: number };
  secrets: string[];
  /** True for the code of strangers: its environment shares no caches with the rest of the organization. */
  isUntrusted?: boolean;
}
