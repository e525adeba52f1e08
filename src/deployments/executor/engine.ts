import type { OperationNodeSource } from 'kysely';
import type { ClientConfig } from 'pg';
import type { Context, Platform } from '#platform/context.ts';
import type { Database, Scope } from '#platform/database/index.ts';
import type { DeployableKind, ExpandedVariables } from '#deployments/model/kind.ts';
import type { TaskOutcome } from '#deployments/model/kind.ts';
import type { Commit, ImageName, ServiceSnapshot } from '#deployments/model/snapshot.ts';
import type { DeploymentAction, RunEvent } from '#deployments/model/states.ts';
import type { Mask } from '#deployments/logs/writer.ts';
import type { Tracer } from '#platform/telemetry/index.ts';
import type {
  BaseImage,
  ClusterRuntimes,
  Handle,
  RegistryAccess,
  Runtime,
  WorkloadIdentity,
} from '#runtimes/runtime.ts';
import type { FrozenVariable } from '#deployments/model/variables.ts';

interface SourceRequest {
  organizationId: string;
  url: string;
  branch: string;
  gitTokenId: string | null;
  signal: AbortSignal;
}

/** Chart of a Helm repository of an organization. */
export interface ChartRequest {
  organizationId: string;
  repositoryId: string;
  name: string;
  version: string;
  signal: AbortSignal;
}

/** End of the commands of a step EXECUTING, as kinds record it. */
export interface Execution {
  organizationId: string;
  environmentId: string;
  deploymentId: string;
  /** Event that was executed; undefined if the deployment's action says it. */
  event: RunEvent | undefined;
  action: DeploymentAction;
  startedAt: Date;
  /** Outcomes of the commands that ended; their output files may hold secrets. */
  outcomes: TaskOutcome[];
  /** Masked reason of the failure; null after a success. */
  failure: string | null;
  /** Commit of what ran, where there is one. */
  commitId: string | null;
  /** Secrets among the service's variables and configuration: nothing that is kept to be shown may contain any of them. */
  secrets: string[];
}

/** Service that is to be removed, and its location. */
interface Removal {
  organizationId: string;
  deploymentId: string;
  nodeId: string;
  generation: number;
  runtime: Runtime;
  /** Null where nothing was ever applied. */
  handle: Handle | null;
  /** True if it goes on without what can't be saved. */
  bestEffort: boolean;
  signal: AbortSignal;
  log(text: string): void;
}

/** Service that was deployed, and its location. */
interface Deployed extends Pick<Removal, 'organizationId' | 'nodeId' | 'runtime' | 'signal' | 'log'> {
  handle: Handle;
  /** True if it has no release yet. */
  isFirst: boolean;
}

/** Hooks of a kind that need the database. */
export interface KindHooks<Spec = unknown> {
  /**
   * Opens what is sealed in the configuration, and makes what is made anew for each deployment (credentials of one run). Called when the
   * stage starts, in every attempt. `values` goes to `workload` and `tasks` as `opened`.
   */
  open?(
    context: Context,
    service: ServiceSnapshot<Spec>,
    identity: WorkloadIdentity,
  ): Promise<{ values: Record<string, string>; secrets: string[] }>;
  /**
   * Completes what was deployed, before services of later stages are. Called in every attempt, once the workload is ready; throws an error for
   * people where it can't be completed, and the deployment fails then. Returns the handle, which may be a new one.
   */
  afterDeployment?(context: Context, service: ServiceSnapshot<Spec>, deployed: Deployed): Promise<Handle>;
  /**
   * Saves what must outlive a service, before anything of it is removed (a delete or an uninstall). Called in every attempt; throws an error
   * for people where it can't be saved, and nothing is removed then.
   */
  beforeRemoval?(context: Context, service: ServiceSnapshot<Spec>, removal: Removal): Promise<void>;
  /**
   * Keeps what an execution left (outputs become variables). Called once, in the transaction that fences out older attempts, for a good
   * end and for a bad one. Answers lines for the log; throws an error for people where a good end is none.
   */
  record?(context: Context, service: ServiceSnapshot<Spec>, execution: Execution): Promise<string[]>;
  /** Takes back what `open` made for an execution that was cancelled: nothing of it was recorded. */
  abandon?(context: Context, service: ServiceSnapshot<Spec>, identity: WorkloadIdentity): Promise<void>;
}

/** Access to the repositories, images and registries that services are deployed from. */
export interface Sources {
  /** Returns the named commit, or the head of the branch. */
  resolve(request: SourceRequest & { commitId: string | null }): Promise<Commit>;
  /** Returns the commit if it is a folder that was uploaded for the service. */
  findUploaded(request: { organizationId: string; serviceId: string; commitId: string }): Promise<Commit | undefined>;
  /**
   * Checks the commit out into the directory. `uploadedFor` is the service whose uploaded folder the commit is. With `isUntrusted` (the
   * code of a fork) nothing but the repository itself is read with credentials.
   */
  checkout(
    request: SourceRequest & {
      commit: string;
      uploadedFor?: string;
      isUntrusted: boolean;
      directory: string;
      log(line: string): void;
    },
  ): Promise<void>;
  /** Returns the image that a name and a tag stand for now, as a reference with its digest. */
  resolveImage(request: ImageName & { organizationId: string; signal: AbortSignal }): Promise<string>;
  /** Returns the digest (SHA-256, hexadecimal) of a chart's archive in a Helm repository. */
  resolveChart(request: ChartRequest): Promise<string>;
  /** Downloads a chart's archive into a file. Throws an error for people if it has another digest than the given one. */
  fetchChart(request: ChartRequest & { digest: string | null; file: string }): Promise<void>;
  /** Returns the runtime's access to a registry of the organization; null if the registry needs no credentials. */
  registryAccess(organizationId: string, registryId: string): Promise<RegistryAccess | null>;
  /** Returns an image that a build names. Throws an error for people if it may not be used. With `isUntrusted` no credentials are. */
  resolveBase(request: {
    organizationId: string;
    isUntrusted: boolean;
    name: string;
    platform: string;
    signal: AbortSignal;
  }): Promise<BaseImage>;
  /** Throws an error for people where a builder may not fetch from a host. */
  checkHost(host: string): Promise<void>;
}

/**
 * Expands a service's variables at the start of its stage, with what earlier stages wrote and with external secrets. `isFork` withholds the
 * secrets: the environment runs the code of a fork.
 */
export type ExpandVariables = (
  context: Context,
  organizationId: string,
  service: ServiceSnapshot,
  deployment: {
    id: string;
    environmentId: string;
    isFork: boolean;
    shared: FrozenVariable[];
    isRollback: boolean;
    signal: AbortSignal;
  },
) => Promise<ExpandedVariables & { warnings: string[] }>;

/** Parts of the engine that src/app/ provides: the engine knows neither HTTP nor services nor a single runtime. */
export interface EngineParts {
  platform: Platform;
  /** A direct connection, not through a pooler: its advisory lock shows that the worker lives. */
  directConfig: ClientConfig;
  nodeId: string;
  installation: { id: string; epoch: number };
  kinds: Record<string, DeployableKind>;
  /** Throws an error for people where an organization may run nothing on a cluster of its own: the operator decides, at any time. */
  checkPlace(organizationId: string, clusterId: string): Promise<void>;
  /** Throws an error for people where ports of the machine are not the service's to be published on. */
  checkPublished(
    service: { organizationId: string; environmentId: string; serviceId: string },
    ports: { protocol: 'TCP' | 'UDP'; port: number }[],
  ): Promise<void>;
  /** Throws DiskLimitError where an organization may take no more disk of this machine. */
  checkDisk(organizationId: string): Promise<void>;
  /** Runtimes of the clusters; each throws an error for people when it cannot be used. */
  runtimes: ClusterRuntimes;
  /** Repositories and registries as a runtime's deployments see them. */
  sourcesFor(runtime: string): Sources;
  /** Hooks of kinds besides planning, by kind. */
  hooks: Record<string, KindHooks | undefined>;
  expand: ExpandVariables;
  /** Chooses the custom domains that a service is applied with: only those that its organization has proven. */
  routeDomains(
    context: Context,
    organizationId: string,
    service: ServiceSnapshot,
  ): Promise<{ domains: string[]; warnings: string[] }>;
  /** Returns the query that forgets all other routes of a service, for the write of its success. */
  deleteOtherRoutes(db: Database, scope: Scope, serviceId: string, domains: string[]): OperationNodeSource;
  makeMask(secrets: string[]): Mask;
  /** Gets a span per deployment and step. */
  tracer: Tracer;
  /** Folder for checkouts. */
  workDirectory: string;
  /** Ends the processes of this machine that work in a folder or below. */
  endProcessesIn(folder: string): Promise<void>;
  slots: { deployments: number; builds: number; checkouts: number; perOrganization: number };
}

/** Generation of what a deployment makes outside the database (docs/contributing/engine.md, *The queue*): epoch first, so that a restored database is ahead. */
export const generationOf = (epoch: number, number: number): number => epoch * 2 ** 32 + number;
