import type { TObject, TSchema } from 'typebox';
import type { Context } from '#platform/context.ts';
import type { DeployableKind, ImageName, KindHooks, RunEvent } from '#deployments/index.ts';
import type { Route, Target } from '#platform/http/route.ts';
import type { EnvironmentTarget } from '#resources/environment/index.ts';
import type { Holder, ServiceKind } from '#services/service/holder.ts';
import type { GitSource } from '#services/sources/git.ts';
import type { HclValue } from '#services/hcl/hcl.ts';
import type { PortSpec } from '#services/ports/ports.ts';
import type { RuntimeFeature } from '#runtimes/runtime.ts';
import type { ServiceNeeds } from '#services/service/needs.ts';
import type { ServiceRow } from '#services/service/queries.ts';
import { serviceTarget, type ServiceTarget } from '#services/service/target.ts';

/** Fields that every create and edit body of a service has, besides the kind's own part. */
export interface CommonInput {
  name: string;
  description?: string | null;
  icon_uri?: string;
}

/**
 * Kind of service that answers can show. A kind with nothing more than this is read-only here: its services are created and run elsewhere.
 */
export interface ShownKind<Spec = unknown> {
  kind: ServiceKind;
  /** First segment of its paths. */
  path: string;
  /** Prefix of its tags (`Application`). */
  tag: string;
  schemas: { answer: TObject };
  /** The kind's own part of an answer. */
  toView(context: Context, row: ServiceRow, spec: Spec): Record<string, unknown>;
  /** Endpoints that no other kind has. */
  routes?(needs: ServiceNeeds): Route[];
}

/**
 * Kind of service: a descriptor and the functions that only this kind has. Code that kinds share is written once, as capabilities, which
 * mount.ts joins with the kinds.
 */
/** Content that the copy of a service starts with. */
export type ContentOfCopy = 'LAST_BACKUP' | 'COPY';

export interface Kind<
  Spec = unknown,
  Input extends Partial<CommonInput> = Partial<CommonInput>,
> extends ShownKind<Spec> {
  /** Tag of its lists (`Applications`). */
  listTag: string;
  /** Stage that a new service of it joins (docs/contributing/engine.md, *Snapshot, resolution, plan*). */
  defaultStage: string;
  schemas: { create: TObject; edit: TObject; answer: TObject };
  /**
   * Makes the configuration to store from a body. When a service is edited, fields that the body leaves out keep their value. Throws 400
   * that names the field.
   */
  toSpec(context: Context, place: SpecPlace, input: Input, present: Spec | null): Promise<Spec>;
  /** Deployment of the kind as pure functions, which app/ hands to the engine. */
  deployment: DeployableKind<Spec>;
  /** Steps of its deployment that need the database. */
  hooks?: KindHooks<Spec>;
  /** Returns the runtime features that a configuration needs. A cluster without them is refused before anything is queued. */
  requires?(spec: Spec): RuntimeFeature[];
  /** Last part of its icon's address, where that is not `path`. */
  icon?(spec: Spec): string;
  /** Returns what histories show of a configuration (image, tag, schedule), by the names of the reference. */
  details?(spec: Spec): Record<string, unknown>;
  /** Options of its deploy calls; without it they take none. */
  deploy?: DeployInput<Spec>;
  /** Resource of the Terraform provider. Without it, exports leave services of the kind out, and say so. */
  terraform?: KindTerraform<Spec>;
  /** Options of the calls that remove its services. */
  removal?: {
    uninstallQuery: TObject;
    deleteQuery: TObject;
    /** `keep`: the workload is removed, the service stays. */
    choose(said: unknown): { keep?: boolean; skipDestroy?: boolean };
  };
  /** Ids of the common calls that the kind has, if the reference has only a few of them; they stand under `listTag` then. */
  operations?: readonly string[];
  /** Services whose executions its history shows besides its own. */
  historyOf?(context: Context, service: ServiceTarget): Promise<string[]>;
  capabilities?: KindCapabilities<Spec>;
}

/** Terraform resource of a kind, without the attributes of every service (name, variables, stage, …). */
export interface KindTerraform<Spec = unknown> {
  /** Type of the resource. */
  resource: string;
  attributes(spec: Spec): Record<string, HclValue | undefined>;
}

/** Options of a deploy call (docs/contributing/rules.md 15). */
interface DeployInput<Spec = unknown> {
  /** Body of `POST …/deploy`. */
  body?: TObject;
  /** Query of `POST …/deploy` and `POST …/redeploy`. */
  query?: TObject;
  /** Name of its list in `POST /environment/{id}/service/deploy`. */
  group: string;
  /** Entry of that list: an id, or an object with an id and options. Without it there is no such list. */
  entry?: TSchema;
  /** Reads the options of body and query. Throws 400 that names the field, below `path` where it stands in a list. */
  choose(spec: Spec, said: unknown, path: string): DeployChoice<Spec>;
}

export interface DeployChoice<Spec = unknown> {
  /** Configuration that the call stores in the service. */
  spec?: Spec;
  /** Commit of this deployment only. */
  commitId?: string;
  /** Commit of this deployment in the repository of its values. */
  valuesCommitId?: string;
  /** Event that is run instead of a deployment. */
  event?: RunEvent;
  /** Removal only: skips the `terraform destroy` that would run first. */
  skipDestroy?: boolean;
  /** Set if the service has nothing that the call asks for: no deployment is requested. */
  nothing?: true;
}

/** Capabilities of a kind besides the common calls. mount.ts mounts the endpoints of those that are present. */
interface KindCapabilities<Spec = unknown> {
  /** Returns the ports that the proxy forwards to; links and custom domains need it. */
  ports?(spec: Spec): PortSpec[];
  /**
   * Returns the repository that the service is built from; null if it has none. Commits and git webhooks need it. `of` is the query
   * parameter of that name.
   */
  gitSource?(spec: Spec, of?: string): GitSource | null;
  /** Returns the configuration with each of its repositories changed; without it, `git_repository` is the only one. */
  mapGitSources?(spec: Spec, change: (source: GitSource) => GitSource): Spec;
  /**
   * Returns what a push to a repository of the service does: a deployment, a plan, or the record of the newer commit (`NOTE`). Null if pushes
   * do nothing.
   */
  autoDeploy?(spec: Spec): 'DEPLOY' | 'PLAN' | 'NOTE' | null;
  /**
   * Form of the first version of its history: FAILED and SUCCESS instead of states (`outcomes`), or no such history (`none`). States if
   * absent.
   */
  historyV1?: 'outcomes' | 'none';
  /** Registry image that the service runs; null if its image is built. `withTag` returns the same configuration with another tag. */
  image?: { of(spec: Spec): ImageName | null; withTag(spec: Spec, tag: string): Spec };
  /** Present if environments with the service can be previewed with another tag of its image. */
  imagePreview?: object;
  /** Endpoint of a single domain, of which the reference has either `GET …/customDomain/{id}` or `GET …/customDomain/{id}/status`. */
  customDomains?: { one: 'get' | 'status' };
  deploymentRestrictions?: object;
  /** Present if services of the kind run to an end: then their executions are listed. */
  executions?: object;
  /** Present if the kind has advanced settings; their keys stand in advanced-settings/settings.ts. */
  advancedSettings?: object;
  /** False where the reference has no restart. */
  restart?: boolean;
  /** False if nothing runs that could be stopped. */
  stop?: boolean;
  network?: object;
  links?: object;
  /**
   * Lists of commits. `of` has the values of the query parameter `of`, which chooses among several repositories; the first is the default.
   */
  commits?: { contributors?: boolean; of?: readonly string[] };
  /** Present if a folder can be deployed that a call brings, instead of a commit of the repository. */
  folder?: object;
  clone?: {
    /** Returns whether a configuration has sealed values, which a copy has as well. */
    hasSecrets?(spec: Spec): boolean;
    /**
     * Makes the configuration of a copy, with new ids of its parts and newly sealed values. By default the ids of `ports` and `storage` are
     * renewed, and the rest is copied unchanged.
     */
    copySpec?(
      context: Context,
      from: ServiceRow,
      to: { id: string; environmentId: string; runtime: string },
    ): Promise<Spec>;
    /** Notes that a new copy gets the content of its source when it is first deployed. Present where there is content. */
    fillCopy?(context: Context, from: ServiceRow, copyId: string, content: ContentOfCopy): Promise<void>;
  };
}

/** Scope of a configuration: ids that the configuration names must be of the same organization. */
export interface SpecPlace {
  organizationId: string;
  environmentId: string;
  environment?: EnvironmentTarget;
  /** Id of the service, which its sealed values are bound to. */
  serviceId: string;
  /** The service as it was; null for a new one. */
  service: ServiceRow | null;
  /** Runtime of the environment's cluster. */
  runtime: string;
}

export const paramOf = (kind: Kind): string => `${kind.path}Id`;

/** The holder that capabilities stand on. */
export const holderOf = (kind: Kind): Holder & { target: Target<ServiceTarget> } => ({
  path: kind.path,
  param: paramOf(kind),
  tag: kind.tag,
  name: kind.tag,
  scope: kind.kind as Holder['scope'],
  target: serviceTarget(paramOf(kind), kind.tag, kind.kind),
});
