import type { ProgramSpec, TaskSpec, WorkloadIdentity } from '#runtimes/runtime.ts';

/**
 * Names and labels of everything that the runtime makes in an engine. What lacks our installation's label is never
 * touched (docs/contributing/engine.md, *Runtimes*): everything is found through search.ts.
 */
export const LABEL = {
  installation: 'quarterdeck.installation',
  organization: 'quarterdeck.organization',
  project: 'quarterdeck.project',
  environment: 'quarterdeck.environment',
  service: 'quarterdeck.service',
  generation: 'quarterdeck.generation',
  /** Number of the attempt at the deployment that made it; none where no other attempt could follow. */
  attempt: 'quarterdeck.attempt',
  /** Number of the instance within its generation, from 1. */
  instance: 'quarterdeck.instance',
  /** Internal host name of the service. */
  hostname: 'quarterdeck.hostname',
  /** Human name of the service. */
  name: 'quarterdeck.name',
  /** Hash of the configuration that the container was made from. */
  config: 'quarterdeck.config',
  /** Its address in the environment's network, kept while it is stopped, too. */
  address: 'quarterdeck.address',
  /** Where the control plane reaches its ports, JSON: `{"<internal port>": {"address", "port"}}`. */
  endpoints: 'quarterdeck.endpoints',
  /** Paths of its file variables, JSON list. */
  files: 'quarterdeck.files',
  /** Names of the environment variables with secret values, JSON list: their values are masked in what is reported. */
  secrets: 'quarterdeck.secrets',
  /** Liveness probe, JSON, for the supervisor (liveness.ts). */
  liveness: 'quarterdeck.liveness',
  /** Grace period of its end in seconds. */
  grace: 'quarterdeck.grace',
  /** Generation of the deployment that it was restarted for. */
  restart: 'quarterdeck.restart',
  /** How often it was started anew from its image, and why the last time, JSON (`Replaced`). */
  replaced: 'quarterdeck.replaced',
  /** Name of the execution that the container is of. */
  task: 'quarterdeck.task',
  /** Name of the execution whose way out it is: a network, or the proxy on it. */
  egress: 'quarterdeck.egress',
  /** Reference of the registry image that it was made from. */
  image: 'quarterdeck.image',
  cacheKey: 'quarterdeck.cache-key',
  storage: 'quarterdeck.storage',
} as const;

/** Labels that say whose an object is; `generation` only where the object belongs to one. */
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

/** Scopes of what a container is here: an instance, and what sees to it that it runs. */
const CARRIED = new Set(['PODS', 'DEPLOYMENTS', 'STATEFUL_SETS', 'JOBS', 'CRON_JOBS']);

/**
 * Labels that a spec asks for, without those that would pass for ours. Annotations are among them: a container carries nothing else (the
 * engine's own annotations speak to the OCI runtime). Of those for other kinds of objects there is nothing here that could carry them.
 */
export function carriedLabels(spec: Pick<ProgramSpec, 'labels' | 'annotations'>): Record<string, string> {
  const annotations = (spec.annotations ?? []).filter(({ scopes }) => scopes.some((scope) => CARRIED.has(scope)));
  const all = { ...Object.assign({}, ...annotations.map(({ values }) => values)), ...spec.labels };
  return Object.fromEntries(Object.entries<string>(all).filter(([key]) => !key.startsWith('quarterdeck.')));
}

export const containerName = (hostname: string, generation: number, instance: number): string =>
  `${hostname}-${generation}-${instance}`;
/** The same generation and name are the same execution. */
export const taskName = ({ identity, name }: Pick<TaskSpec, 'identity' | 'name'>): string =>
  `qd-task-${identity.serviceId}-${identity.generation}-${name}`;
/** Network and proxy of an execution that reaches listed hosts only. */
export const egressName = (task: Pick<TaskSpec, 'identity' | 'name'>): string => `${taskName(task)}-egress`;
export const networkName = (environmentId: string): string => `qd-${environmentId}`;
export const volumeName = (storageId: string): string => `qd-${storageId}`;
export const imageRepository = (serviceId: string): string => `quarterdeck/${serviceId}`;
