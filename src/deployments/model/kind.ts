import type { Handle, RegistryAccess, WorkloadIdentity, WorkloadSpec } from '#runtimes/runtime.ts';
import type { LastRelease, PlannedService, ServiceSnapshot, Commit } from '#deployments/model/snapshot.ts';
import type { DeploymentAction } from '#deployments/model/states.ts';

/** A git source that has to be resolved to a commit before a plan can be made. */
export interface SourceToResolve {
  url: string;
  branch: string;
  gitTokenId: string | null;
}

/** What the variables of a service became when its stage started. */
export interface ExpandedVariables {
  variables: Record<string, string>;
  files: { path: string; content: string }[];
  secrets: string[];
}

/** What is built of a service, before the checkout's place is known. */
export interface BuildRecipe {
  rootPath: string;
  dockerfilePath: string;
  targetStage: string | null;
  timeoutSeconds: number;
  resources: { cpuMilli: number; memoryMib: number };
}

/** What the engine needs to know of a kind of service. Pure: kinds are given to the engine by app/. */
export interface DeployableKind {
  /** The git source of a service of it, null where it has none. */
  source(service: ServiceSnapshot): SourceToResolve | null;
  /** Steps of an action (engine.md). */
  plan(
    service: ServiceSnapshot,
    action: DeploymentAction,
    commit: Commit | null,
    last: LastRelease | null,
  ): PlannedService;
  build?(service: ServiceSnapshot): BuildRecipe;
  /** The workload to apply. */
  workload(
    service: ServiceSnapshot,
    identity: WorkloadIdentity,
    image: string,
    variables: ExpandedVariables,
    options: WorkloadOptions,
  ): WorkloadSpec;
}

export interface WorkloadOptions {
  /** Domain under which the proxy serves services. */
  proxyDomain: string;
  /** How the runtime gets at the image; null where nobody asks. */
  registry: RegistryAccess | null;
}

export type { Handle };
