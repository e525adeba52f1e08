import type { Settings } from '#platform/settings/index.ts';
import type { Deployable, RegistryAccess, Runtime, TaskEnd, TaskSpec, WorkloadIdentity } from '#runtimes/runtime.ts';
import type { LastRelease, PlannedService, ResolvedService, ServiceSnapshot } from '#deployments/model/snapshot.ts';
import type { DeploymentAction } from '#deployments/model/states.ts';
import type { FrozenVariable } from '#deployments/model/variables.ts';

/** A git source that has to be resolved to a commit before a plan can be made. */
export interface GitSourceToResolve {
  type: 'git';
  url: string;
  branch: string;
  gitTokenId: string | null;
}

/** Registry id of images whose names begin with their registry's host; they are pulled without credentials. */
export const PUBLIC_REGISTRY = 'public';

/** An image of a registry, whose tag has to be resolved to a digest. */
export interface ImageSourceToResolve {
  type: 'image';
  /** Registry of the organization, whose credentials are never frozen; or PUBLIC_REGISTRY. */
  registryId: string;
  /** Without the registry's host: `library/nginx`. */
  name: string;
  /** A tag, or a digest (`sha256:…`), which is taken as it is. */
  tag: string;
}

/** A chart of a Helm repository, whose version has to be resolved to the digest of its archive. */
export interface ChartSourceToResolve {
  type: 'chart';
  /** Helm repository of the organization, whose credentials are never frozen. */
  repositoryId: string;
  name: string;
  version: string;
}

type SourceToResolve = GitSourceToResolve | ImageSourceToResolve | ChartSourceToResolve;

/** Expanded variables and files of a service, made when its stage starts. */
export interface ExpandedVariables {
  variables: Record<string, string>;
  files: { path: string; content: string }[];
  secrets: string[];
}

/** Recipe for a service's image, before the folder of the checkout is known. */
export interface BuildRecipe {
  rootPath: string;
  dockerfilePath: string;
  /** Dockerfile of kinds that generate it; written to `dockerfilePath` of the checkout before the build. */
  dockerfile?: string | DockerfileMaker | undefined;
  targetStage: string | null;
  timeoutSeconds: number;
  resources: { cpuMilli: number; memoryMib: number };
}

/** Files of a checkout, by paths from its root. Links that leave the checkout count as missing. */
export interface CheckoutFiles {
  /** Returns the names in a folder, those of folders with a slash at their end; none if there is no such folder. */
  list(folder: string): Promise<string[]>;
  /** Returns the text of a file; null if there is none. Throws Error for one that is too large. */
  read(file: string): Promise<string | null>;
}

/** Makes a Dockerfile from files of the checkout and the names of the service's variables; null if the checkout has its own. */
export type DockerfileMaker = (
  files: CheckoutFiles,
  variables: readonly string[],
) => Promise<GeneratedDockerfile | null>;

interface GeneratedDockerfile extends Partial<Pick<BuildRecipe, 'rootPath' | 'dockerfilePath'>> {
  text: string;
  /** Content of its `.dockerignore`; null or absent where the one of the checkout counts. */
  ignore?: string | null;
  /** Lines for the log of the build. */
  notes?: string[];
}

export interface WorkloadOptions {
  /** Domain under which the proxy serves services. */
  proxyDomain: string;
  /** Access of the runtime to the image's registry; null if it needs no credentials. */
  registry: RegistryAccess | null;
  /**
   * Path to which a command writes output that becomes variables of the environment (docs/contributing/engine.md, *Snapshot, resolution,
   * plan*).
   */
  outputPath: string;
  /** Sealed values of the configuration, opened by the kind's `open`; by names of its own choosing. */
  opened: Record<string, string>;
  /** True if the teardown is best effort (docs/contributing/rules.md 19). */
  bestEffort: boolean;
  /** Chart and files of values that were fetched; null before. */
  fetched: FetchedChart | null;
}

/** Sources of a chart on this machine. */
export interface FetchedChart {
  /** Folder or archive of the chart. */
  chart: string;
  /** Private folder for further files. */
  folder: string;
  /** Files of values of a repository, as they are there. */
  values: { name: string; content: string }[];
}

/** Location of a chart in its repository, and of files of values in theirs. */
interface ChartRecipe {
  /** Folder of the chart in its git repository; `/` for the whole. */
  rootPath: string;
  /** Files of values in the repository of `valuesSource`. */
  valuesPaths: string[];
  /** True if values are checked against the schemas of the chart. */
  isValidated: boolean;
}

/** Runtime that an image is built on, and settings that its recipe depends on. */
interface BuildOptions {
  /** Organization that owns the files of the checkout. */
  organizationId: string;
  runtime: Runtime['name'];
  settings: Pick<Settings, 'terraformImage' | 'openTofuImage'>;
  /** Image that the service's source was resolved to; null if the source is no image. */
  image: string | null;
}

/** Repositories that are checked out for a command, so that it needs neither network access to them nor their tokens. */
export interface TaskCheckout {
  /** Folder where it finds them. */
  path: string;
  /** `folder` is their name in it. */
  repositories: (Omit<GitSourceToResolve, 'type'> & { folder: string })[];
}

/** A command of a step EXECUTING. */
export interface PlannedTask {
  task: TaskSpec;
  checkout?: TaskCheckout;
  /** Limit of runs until one ends with 0; each run's name gets the number of its attempt. */
  attempts: number;
  /** Statuses besides 0 that are a good end (`terraform plan -detailed-exitcode` answers 2 for changes). */
  accepts?: number[];
  /** True if the command also runs after one before it failed or was given up, to release what was taken. */
  always?: boolean;
  /** True if a failure is only logged and the next commands run all the same. Teardowns that are best effort set it. */
  tolerated?: boolean;
}

/** End of one attempt at a command of a step EXECUTING. */
export interface TaskOutcome {
  name: string;
  /** From 1. */
  attempt: number;
  end: TaskEnd;
}

/** Schedule of a kind with executions, and how many of them are kept. */
export interface ExecutionPolicy {
  /** Null where only deployments run it. */
  cron: { expression: string; timeZone: string } | null;
  /** Treatment of an execution that is due while the last one still runs. */
  concurrency: 'Allow' | 'Forbid' | 'Replace';
  /** Number of failed executions whose remains the runtime keeps, to be looked at. */
  keptFailures: number;
  /** Seconds after its end after which a failed execution's remains are removed too; null for never. */
  keptSeconds: number | null;
}

/** Configuration of a service, as far as it declares volumes. */
export type Configured<Spec> = Pick<ServiceSnapshot<Spec>, 'serviceId' | 'spec'>;

export interface DeclaredVolume {
  id: string;
  sizeGib: number;
}

/** Description of a kind of service for the engine. Pure: src/app/ gives the kinds to the engine. */
export interface DeployableKind<Spec = unknown> {
  /** Returns the source that a service is made of; null if it is neither a repository nor an image. */
  source(service: ServiceSnapshot<Spec>): SourceToResolve | null;
  /** Returns a second repository that the service is deployed with (values of a chart); its commit is resolved beside the source's. */
  valuesSource?(service: ServiceSnapshot<Spec>): GitSourceToResolve | null;
  /** Plans the steps of an action (docs/contributing/engine.md). `last` is null if nothing was released, or if nothing may be skipped. */
  plan(
    service: ServiceSnapshot<Spec>,
    action: DeploymentAction,
    resolved: ResolvedService,
    last: LastRelease | null,
    shared: readonly FrozenVariable[],
  ): PlannedService;
  build?(service: ServiceSnapshot<Spec>, options: BuildOptions): BuildRecipe;
  /** Returns where the chart is; present for kinds that deploy one. */
  chart?(service: ServiceSnapshot<Spec>): ChartRecipe;
  /** Returns whether a removal needs the source, because its commands run in the source's image. */
  needsSourceToRemove?(service: ServiceSnapshot<Spec>): boolean;
  /** Returns the volumes of a configuration with their sizes; absent for kinds without volumes. */
  volumes?(service: Configured<Spec>): DeclaredVolume[];
  /** Returns the workload or chart to apply; absent for kinds whose services only run to their end. */
  deployable?(
    service: ServiceSnapshot<Spec>,
    identity: WorkloadIdentity,
    image: string,
    variables: ExpandedVariables,
    options: WorkloadOptions,
  ): Deployable | Promise<Deployable>;
  /** Returns the commands of the step EXECUTING, in order: the first that fails is the step's failure. */
  tasks?(
    service: ServiceSnapshot<Spec>,
    action: DeploymentAction,
    identity: WorkloadIdentity,
    image: string,
    variables: ExpandedVariables,
    options: WorkloadOptions,
  ): PlannedTask[];
  /**
   * Names of all commands whose remains the runtime removes once the service's end is written, each with its attempt: their environment and
   * files may hold secrets.
   */
  discards?: readonly string[];
  /** For kinds whose executions are kept, each with its log; what they leave in the runtime is removed by it. */
  executions?(service: ServiceSnapshot<Spec>): ExecutionPolicy;
}
