import type { DeploymentAction, RunEvent } from '#deployments/model/states.ts';
import type { FrozenVariable } from '#deployments/model/variables.ts';
import type { Annotations } from '#runtimes/runtime.ts';

/** Format of snapshots and plans; a release of Quarterdeck reads its own and the one before (docs/contributing/engine.md). */
export const FORMAT = 3;
export const FORMATS = [FORMAT, FORMAT - 1];

/** Commit that a source was resolved to. */
export interface Commit {
  id: string;
  date: string;
  author: string;
  message: string;
  tag: string;
  /** True if it is a folder that was uploaded for the service (docs/decisions/0100-an-uploaded-folder-is-a-commit-in-the-database.md): its repository does not have it. */
  uploaded?: true;
}

/** Service in a snapshot: configuration only, frozen in the request's transaction, without any I/O. */
export interface ServiceSnapshot<Spec = unknown> {
  serviceId: string;
  kind: string;
  name: string;
  iconUri: string;
  /** Internal host name. */
  hostname: string;
  stage: { id: string; name: string; position: number };
  /** Versions of the three configurations that the snapshot is made of. */
  versions: { service: number; environment: number; project: number };
  /** Configuration of the service, as its kind wrote it. */
  spec: Spec;
  /** Properties that histories show of the service; absent from snapshots of releases that did not know them. */
  details?: Record<string, unknown>;
  advancedSettings: Record<string, unknown>;
  /** Host names of custom domains that lead to the default port. */
  customDomains: string[];
  /** Custom domains that ask for a certificate; absent if none does. */
  certificateDomains?: string[];
  /** Unexpanded variables that stand on the service itself, secrets by version; in format 1 all that it sees. */
  variables: FrozenVariable[];
  /** Reason why the cluster can't run the service, as a sentence: the service fails alone, and the others go on. */
  unable?: string;
  /** Commit that this request asked for, instead of the head of the branch. */
  commitId: string | null;
  /** Commit of the repository of its values that this request asked for. */
  valuesCommitId?: string;
  /** Event that a request with the action RUN executes. */
  event?: RunEvent;
  /** Labels and annotations for the resources of the service; older snapshots have none. */
  labels?: Record<string, string>;
  annotations?: Annotations[];
  /** Leaves out the commands that a removal would run first: resources that the service made outside stay. */
  skipDestroy?: true;
}

/** Services as they are frozen: what each has of its own, and what all services of their environment see alike. */
export interface FrozenServices {
  services: ServiceSnapshot[];
  /** Unexpanded variables, built-ins among them. Kept once for all, else an environment's snapshots would grow with the square of its services. */
  shared: FrozenVariable[];
}

export interface Snapshot {
  format: number;
  action: DeploymentAction;
  organizationId: string;
  projectId: string;
  environmentId: string;
  clusterId: string;
  services: ServiceSnapshot[];
  /** As `FrozenServices.shared`; format 1 has none. */
  shared?: FrozenVariable[];
  /** True if commits and digests are those of the last release where there is one (redeploy). */
  repeat: boolean;
  /** Teardown is best effort: what is absent is no error (`skipReconcile`, docs/contributing/rules.md 19). */
  bestEffort: boolean;
  /** Execution that this rollback goes back to; its resolution comes with it. */
  rollbackTo?: { deploymentId: string; number: number };
  /** Set if nothing that could be deployed again is kept: the services are then left out. */
  expired?: true;
}

/** Commits and images that a claim found outside, by service. Stored once, so that every attempt does the same. */
export interface Resolution {
  format: number;
  services: Record<string, ResolvedService>;
}

export interface ResolvedService {
  commit?: Commit;
  /** Commit of the repository that its values come from. */
  valuesCommit?: Commit;
  /** Image that a tag stood for, by its digest; in a rollback the image that was released then, while it is kept. */
  image?: string;
  /** Image name that `image` was resolved from. */
  imageSource?: ImageName;
  buildKey?: string;
  /** Chart of a Helm repository that a version stood for. */
  chart?: ResolvedChart;
  /** Reason why the service is not deployed: nothing of it was resolved. */
  failure?: Foreseen;
}

/** Chart of a Helm repository with the digest of its archive. */
export interface ResolvedChart {
  repositoryId: string;
  name: string;
  version: string;
  /** SHA-256 of the archive, hexadecimal. */
  digest: string;
}

/** Failure that is known before a service's first step. */
export interface Foreseen {
  code: 'SOURCE_UNAVAILABLE' | 'CLUSTER_UNABLE' | 'FAILED';
  message: string;
}

/** Image as people name it. */
export interface ImageName {
  registryId: string;
  name: string;
  tag: string;
}

/** Release of a service, as far as a plan depends on it. */
export interface LastRelease {
  image: string | null;
  buildKey: string | null;
  commit: Commit | null;
  valuesCommit: Commit | null;
  imageSource: ImageName | null;
  chart?: ResolvedChart | null;
}

/** Steps that `steps.details` name (docs/contributing/engine.md). */
export const STEP_NAMES = [
  'REGISTRY_CREATE_REPOSITORY',
  'GIT_CLONE',
  'BUILD_QUEUEING',
  'BUILD',
  'MIRROR_IMAGE',
  'DEPLOYMENT_QUEUEING',
  'DEPLOYMENT',
  'ROUTER_DEPLOYMENT',
  'EXECUTING',
] as const;
export type StepName = (typeof STEP_NAMES)[number];

export interface PlannedService {
  serviceId: string;
  name: string;
  kind: string;
  /** Steps in order. */
  steps: StepName[];
  /** Reason why the service is built, applied or left alone, for people. */
  reason: string;
  /** Key over everything that the image is made of; an equal key needs no second build. Null if nothing is built. */
  buildKey: string | null;
  /** Image to apply where nothing is built. */
  image: string | null;
  /** Failure that is known before the first step: the service has no steps, fails alone, and later stages go on. */
  failure?: Foreseen;
  /** Replacement of running instances: by new ones without a gap, or ended before the new ones begin. */
  rollout: 'ROLLING' | 'RECREATE' | 'NONE';
}

export interface PlannedStage {
  id: string;
  name: string;
  position: number;
  services: PlannedService[];
}

/** Plan of a deployment as data: stored, shown, carried out step by step. Stages are in the order in which they are carried out. */
export interface Plan {
  format: number;
  action: DeploymentAction;
  stages: PlannedStage[];
}
