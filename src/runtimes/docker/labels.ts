import type { ProgramSpec, TaskSpec, WorkloadIdentity } from '#runtimes/runtime.ts';

/**
 * Names and labels of everything that the runtime creates in an engine. Objects without the installation's label are never touched
 * (docs/contributing/engine.md, *Runtimes*): everything is found through search.ts.
 */
export const LABEL = {
  installation: 'quarterdeck.installation',
  organization: 'quarterdeck.organization',
  project: 'quarterdeck.project',
  environment: 'quarterdeck.environment',
  service: 'quarterdeck.service',
  generation: 'quarterdeck.generation',
  /** Number of the attempt at the deployment; absent if no other attempt could follow. */
  attempt: 'quarterdeck.attempt',
  /** Number of the instance within its generation, from 1. */
  instance: 'quarterdeck.instance',
  /** Internal host name of the service. */
  hostname: 'quarterdeck.hostname',
  /** Human name of the service. */
  name: 'quarterdeck.name',
  /** Hash of the container's configuration. */
  config: 'quarterdeck.config',
  /** Address in the environment's network, also kept while the container is stopped. */
  address: 'quarterdeck.address',
  /** Addresses at which the control plane reaches the ports, JSON: `{"<internal port>": {"address", "port"}}`. */
  endpoints: 'quarterdeck.endpoints',
  /** Paths of the file variables, JSON list. */
  files: 'quarterdeck.files',
  /** Names of the environment variables with secret values, JSON list: their values are masked in reports. */
  secrets: 'quarterdeck.secrets',
  /** Numbers of the file variables with secret contents, JSON list; absent from containers of older releases. */
  secretFiles: 'quarterdeck.secret-files',
  /** Liveness probe, JSON, for the supervisor (liveness.ts). */
  liveness: 'quarterdeck.liveness',
  /** Grace period in seconds. */
  grace: 'quarterdeck.grace',
  /** Generation of the deployment that requested the restart. */
  restart: 'quarterdeck.restart',
  /** Number of replacements from the image, and the cause of the last one, JSON (`Replaced`). */
  replaced: 'quarterdeck.replaced',
  /** Name of the container's execution. */
  task: 'quarterdeck.task',
  /** Name of the execution that an egress network or its proxy belongs to. */
  egress: 'quarterdeck.egress',
  /** Reference of the registry image that the container runs. */
  image: 'quarterdeck.image',
  cacheKey: 'quarterdeck.cache-key',
  storage: 'quarterdeck.storage',
} as const;

/** Labels of the owner of an object; `generation` only if the object belongs to one. */
export function identityLabels(identity: WorkloadIdentity, generation?: number): Record<string, string> {
  return {
    [LABEL.installation]: identity.installation,
    [LABEL.organization]: identity.organizationId,
    [LABEL.project]: identity.projectId,
    [LABEL.environment]: identity.environmentId,
    [LABEL.service]: identity.serviceId,
    ...(generation === undefined ? {} : { [LABEL.generation]: String(generation) }),
  };
}

/** Labels of an environment's network, which belongs to no single service. */
export function environmentLabels(identity: WorkloadIdentity): Record<string, string> {
  const { [LABEL.service]: _service, ...labels } = identityLabels(identity);
  return labels;
}

/** Annotation scopes that a container stands for: an instance, and the controllers that run it. */
const CARRIED = new Set(['PODS', 'DEPLOYMENTS', 'STATEFUL_SETS', 'JOBS', 'CRON_JOBS']);

/**
 * Labels that a spec asks for, except names reserved for this program. Annotations become labels: a container carries nothing else (the
 * engine's own annotations configure the OCI runtime). Annotations for other kinds of objects are dropped, as no such object exists here.
 */
export function carriedLabels(spec: Pick<ProgramSpec, 'labels' | 'annotations'>): Record<string, string> {
  const annotations = (spec.annotations ?? []).filter(({ scopes }) => scopes.some((scope) => CARRIED.has(scope)));
  const all = { ...Object.assign({}, ...annotations.map(({ values }) => values)), ...spec.labels };
  return Object.fromEntries(Object.entries<string>(all).filter(([key]) => !key.startsWith('quarterdeck.')));
}

export const containerName = (hostname: string, generation: number, instance: number): string =>
  `${hostname}-${generation}-${instance}`;
/** Container name of an execution: the same generation and name are the same execution. */
export const taskName = ({ identity, name }: Pick<TaskSpec, 'identity' | 'name'>): string =>
  `qd-task-${identity.serviceId}-${identity.generation}-${name}`;
/** Name of the network and proxy of an execution that reaches listed hosts only. */
export const egressName = (task: Pick<TaskSpec, 'identity' | 'name'>): string => `${taskName(task)}-egress`;
export const networkName = (environmentId: string): string => `qd-${environmentId}`;
export const volumeName = (storageId: string): string => `qd-${storageId}`;
export const imageRepository = (serviceId: string): string => `quarterdeck/${serviceId}`;
