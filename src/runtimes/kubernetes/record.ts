import { RuntimeError, type WorkloadIdentity } from '#runtimes/runtime.ts';
import { find, pathOf, type Cluster } from './cluster.ts';
import { isConflict } from './errors.ts';
import type { ClusterObject, ConfigMap, DeploymentObject } from './kinds.ts';
import { identityLabels, namespaceOf } from './labels.ts';

/** Release as the record keeps it. It holds no secret. */
export interface KeptRelease {
  generation: number;
  deployment: DeploymentObject;
  /** Object by which the cluster chooses the number of pods; absent for a fixed number. */
  autoscaler?: ClusterObject;
  /** Names of the release's other objects (`Service/app-z1`); absent from records of releases that did not keep them. */
  objects?: string[];
}

/** Record of a service, beside its objects in its namespace. It is written before anything else is changed. */
export interface ServiceRecord {
  /** Generation that was taken over last; a lower one is refused. A restart begins again with that of its release. */
  generation: number;
  hostname: string;
  /** Release that was rolled out last; null before the first. */
  serving: KeptRelease | null;
  /** Release that is being rolled out; null if none is. */
  candidate: KeptRelease | null;
  /** True if the serving release was stopped. A candidate that is taken back leaves it so. */
  isStopped: boolean;
  /** Names of objects that may be there besides the Deployment; a new release removes those that it does not have. */
  made?: string[];
  /** Present for a service that is a Helm chart; it has neither a serving release nor a candidate. */
  chart?: ChartRecord;
}

/** State of a chart that helm does not keep itself. */
export interface ChartRecord {
  /** Highest number of an attempt at the deployment of `generation`. */
  attempt: number;
  displayName: string;
  /** Seconds that its objects have to get ready. */
  timeoutSeconds: number;
  /** True if helm applied the chart of a generation with success. */
  isDeployed: boolean;
  /** Sizes that a stop took away. */
  stopped: { kind: string; name: string; replicas: number | null }[];
  /** Objects of hooks, which helm does not remove. */
  hooks: { collection: string; name: string }[];
}

/** Returns the record with changes of its chart; null without one. */
export const withChart = (
  present: ServiceRecord | null,
  change: Partial<ChartRecord>,
  isStopped = present?.isStopped ?? false,
): ServiceRecord | null => (present?.chart ? { ...present, isStopped, chart: { ...present.chart, ...change } } : null);

/** Name of an object or of a release, which is part of paths and arguments. */
const NAME = /^[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?$/;
const STOPPABLE = ['Deployment', 'StatefulSet', 'DaemonSet', 'Job', 'CronJob'];

/** Returns whether a text is the kind and the name of an object: `Service/app-z1`. */
function isReference(text: string): boolean {
  const [kind = '', name = '', ...rest] = text.split('/');
  return /^[A-Za-z]+$/.test(kind) && NAME.test(name) && rest.length === 0;
}

function keepInside(autoscaler: ClusterObject, name: string, namespace: string): void {
  if (autoscaler.kind !== 'HorizontalPodAutoscaler' && autoscaler.kind !== 'ScaledObject')
    throw new RuntimeError('failed', 'The record of the service was changed: remove it.');
  Object.assign(autoscaler.metadata, { name, namespace });
}

/**
 * Returns the record without what leads out of its namespace. Pods of the environment may have the right to change it, and it is acted on
 * with the rights of the control plane.
 */
export function checked(record: ServiceRecord | null, namespace: string): ServiceRecord | null {
  if (record === null) return null;
  if (!NAME.test(record.hostname))
    throw new RuntimeError('failed', 'The record of the service was changed: remove it.');
  for (const release of [record.serving, record.candidate])
    if (release) {
      release.deployment.kind = 'Deployment';
      Object.assign(release.deployment.metadata, { name: record.hostname, namespace });
      if (release.autoscaler) keepInside(release.autoscaler, record.hostname, namespace);
      if (release.objects) release.objects = release.objects.filter(isReference);
    }
  if (record.made) record.made = record.made.filter(isReference);
  const { chart } = record;
  if (!chart) return record;
  const inside = `/namespaces/${namespace}/`;
  const hooks = chart.hooks.filter(
    ({ collection, name }) =>
      NAME.test(name) &&
      /^\/(?:api|apis\/[a-z0-9.-]+)\/[a-z0-9]+\/namespaces\/[^/]+\/[a-z0-9]+$/.test(collection) &&
      collection.includes(inside),
  );
  const stopped = chart.stopped.filter(({ kind, name }) => STOPPABLE.includes(kind) && NAME.test(name));
  return { ...record, chart: { ...chart, hooks, stopped } };
}

/** Record with the version that it was read in. */
interface Read {
  record: ServiceRecord | null;
  version: string | null;
}

/** Number of times that a change is tried again after another process was faster. */
const TRIES = 20;

/** Returns whether a release has ports, and with them a Service. */
export const hasPorts = ({ deployment }: KeptRelease): boolean =>
  deployment.spec.template.spec.containers.some(({ ports }) => Array.isArray(ports) && ports.length > 0);

export const recordName = (serviceId: string): string => `quarterdeck-${serviceId}`;

/** Returns the record of a service; null if there is none. */
export const readRecord = async (cluster: Cluster, identity: WorkloadIdentity): Promise<ServiceRecord | null> =>
  (await read(cluster, identity)).record;

async function read(cluster: Cluster, identity: WorkloadIdentity): Promise<Read> {
  const found = await find<ConfigMap>(cluster, 'ConfigMap', namespaceOf(identity), recordName(identity.serviceId));
  if (!found) return { record: null, version: null };
  return { record: parseRecord(found), version: found.metadata.resourceVersion! };
}

/** Returns the record in a ConfigMap; null if it has none. */
const parseRecord = ({ data, metadata }: ConfigMap): ServiceRecord | null =>
  checked(JSON.parse(data?.['record'] ?? 'null') as ServiceRecord | null, metadata.namespace!);

/**
 * Returns what a function takes from the record in a ConfigMap; null where that cannot be read. Pods of the environment may have changed
 * it, which must not end what is done for all others. Whoever reads the record of the service is told.
 */
export function fromRecordIn<T>(object: ConfigMap, take: (record: ServiceRecord) => T | null): T | null {
  try {
    const record = parseRecord(object);
    return record && take(record);
  } catch {
    return null;
  }
}

/**
 * Changes the record against concurrent writers: `change` gets the present record and returns the next one, or null to leave it. Throws
 * RuntimeError `superseded` if a higher generation was taken over.
 */
export async function changeRecord(
  cluster: Cluster,
  identity: WorkloadIdentity,
  change: (record: ServiceRecord | null) => ServiceRecord | null,
): Promise<ServiceRecord | null> {
  for (let at = 1; ; at++) {
    const { record, version } = await read(cluster, identity);
    requireNewest(record, identity.generation);
    const next = change(record);
    if (next === null || JSON.stringify(next) === JSON.stringify(record)) return record;
    try {
      await write(cluster, identity, next, version);
      return next;
    } catch (error) {
      if (!isConflict(error) || at === TRIES) throw error;
    }
  }
}

export function requireNewest(record: ServiceRecord | null, generation: number): void {
  if (record && record.generation > generation)
    throw new RuntimeError('superseded', `Generation ${record.generation} of the service was taken over already.`);
}

async function write(
  { connection }: Cluster,
  identity: WorkloadIdentity,
  record: ServiceRecord,
  version: string | null,
): Promise<void> {
  const namespace = namespaceOf(identity);
  const name = recordName(identity.serviceId);
  const labels = identityLabels(identity);
  const metadata = { name, namespace, labels, ...(version === null ? {} : { resourceVersion: version }) };
  const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { record: JSON.stringify(record) } };
  if (version === null) await connection.call('POST', pathOf('ConfigMap', namespace), { body });
  else await connection.call('PUT', pathOf('ConfigMap', namespace, name), { body });
}
