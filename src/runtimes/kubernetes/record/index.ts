import { RuntimeError, type WorkloadIdentity } from '#runtimes/runtime.ts';
import { find, pathOf, type Cluster } from '../cluster.ts';
import { isConflict } from '../errors.ts';
import type { ClusterObject, ConfigMap } from '../kinds.ts';
import { identityLabels, namespaceOf } from '../labels.ts';
import { mustBeSealed, noteSealed } from './marks.ts';
import { AlteredRecord, isSealOf, sealOf } from './seal.ts';
import type { ChartRecord, KeptRelease, ServiceRecord } from './types.ts';
import { reduceUnsealed } from './unsealed.ts';

export type { ChartRecord, KeptRelease, ServiceRecord } from './types.ts';

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
  if (typeof record.hostname !== 'string' || !NAME.test(record.hostname))
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
  /** Version of the ConfigMap; null if there is none. */
  version: string | null;
  isSealed: boolean;
  /** True if another program wrote or changed the record: nothing of it is used. */
  isAltered: boolean;
}

/** Number of times that a change is tried again after another process was faster. */
const TRIES = 20;

/** Returns whether a release has ports, and with them a Service. */
export const hasPorts = ({ deployment }: KeptRelease): boolean =>
  deployment.spec.template.spec.containers.some(({ ports }) => Array.isArray(ports) && ports.length > 0);

export const recordName = (serviceId: string): string => `quarterdeck-${serviceId}`;

/**
 * Returns the record of a service; null if there is none. Throws AlteredRecord for one that somebody else wrote or changed, or that is from
 * before generation `since` was taken over: its seal is right, and somebody put it back.
 */
export const readRecord = async (
  cluster: Cluster,
  identity: WorkloadIdentity,
  since = 0,
): Promise<ServiceRecord | null> => {
  const { record, isAltered } = await read(cluster, identity);
  if (isAltered || (record && record.generation < since)) throw new AlteredRecord(recordName(identity.serviceId));
  return record;
};

async function read(cluster: Cluster, identity: WorkloadIdentity): Promise<Read> {
  const { serviceId } = identity;
  const namespace = namespaceOf(identity);
  const found = await find<ConfigMap>(cluster, 'ConfigMap', namespace, recordName(serviceId));
  if (!found) return { record: null, version: null, isSealed: false, isAltered: false };
  const version = found.metadata.resourceVersion!;
  const opened = openRecord(cluster, namespace, found);
  if (opened?.isSealed) return { ...opened, version, isAltered: false };
  const record =
    opened && !(await mustBeSealed(cluster, identity))
      ? await reduceUnsealed(cluster, opened.record, { serviceId, namespace })
      : null;
  return { record, version, isSealed: false, isAltered: record === null };
}

/** Record in a ConfigMap, and whether it has its seal. */
interface Opened {
  record: ServiceRecord;
  isSealed: boolean;
}

/** Returns the record in a ConfigMap; null if it has none, or a seal that is not its own. */
function openRecord({ recordKey }: Cluster, namespace: string, { data = {}, metadata }: ConfigMap): Opened | null {
  const { record: text, seal } = data;
  if (typeof text !== 'string') return null;
  if (seal !== undefined && !isSealOf(recordKey, { namespace, name: metadata.name, text }, seal)) return null;
  try {
    const record = checked(JSON.parse(text) as ServiceRecord | null, namespace);
    return record && { record, isSealed: seal !== undefined };
  } catch {
    return null;
  }
}

/**
 * Returns what a function takes from the record in a ConfigMap; null where that cannot be read. Pods of the environment may have changed
 * it, which must not end what is done for all others. Whoever reads the record of the service is told.
 */
export function fromRecordIn<T>(
  cluster: Cluster,
  object: ConfigMap,
  take: (record: ServiceRecord, isSealed: boolean) => T | null,
): T | null {
  try {
    const opened = openRecord(cluster, object.metadata.namespace!, object);
    return opened && take(opened.record, opened.isSealed);
  } catch {
    // A record without a seal may have any shape.
    return null;
  }
}

interface ChangeOptions {
  /** Called where the record was altered, which `change` then gets none of; without it that throws AlteredRecord. */
  replacesAltered?(): Promise<void> | void;
  /** Generation before which no record is used: it was taken over. */
  since?: number;
  /** False if the namespace may not say yet that the record of the service has a seal; true without. */
  isMarked?: boolean;
}

/**
 * Changes the record against concurrent writers: `change` gets the present record and returns the next one, or null to leave it; it is called
 * again where another process was faster. Throws RuntimeError `superseded` if a higher generation was taken over.
 */
export async function changeRecord(
  cluster: Cluster,
  identity: WorkloadIdentity,
  change: (record: ServiceRecord | null) => ServiceRecord | null | Promise<ServiceRecord | null>,
  { replacesAltered, isMarked = true, since = 0 }: ChangeOptions = {},
): Promise<ServiceRecord | null> {
  for (let at = 1; ; at++) {
    const { record, version, isSealed, ...found } = await read(cluster, identity);
    const isAltered = found.isAltered || (record !== null && record.generation < since);
    if (isAltered && !replacesAltered) throw new AlteredRecord(recordName(identity.serviceId));
    if (isAltered) await replacesAltered!();
    requireNewest(record, identity.generation);
    const next = await change(isAltered ? null : record);
    if (next === null) return record;
    // No moment in which a first record without its seal would be used. One of an earlier release is marked once it has a seal.
    if (!isMarked && (version === null || isSealed)) await noteSealed(cluster, identity);
    if (isSealed && JSON.stringify(next) === JSON.stringify(record)) return record;
    try {
      await write(cluster, identity, next, version);
    } catch (error) {
      if (!isConflict(error) || at === TRIES) throw error;
      continue;
    }
    if (version !== null && !isSealed) await noteSealed(cluster, identity);
    return next;
  }
}

export function requireNewest(record: ServiceRecord | null, generation: number): void {
  if (record && record.generation > generation)
    throw new RuntimeError('superseded', `Generation ${record.generation} of the service was taken over already.`);
}

async function write(
  cluster: Cluster,
  identity: WorkloadIdentity,
  record: ServiceRecord,
  version: string | null,
): Promise<void> {
  const namespace = namespaceOf(identity);
  const name = recordName(identity.serviceId);
  const labels = identityLabels(identity);
  const metadata = { name, namespace, labels, ...(version === null ? {} : { resourceVersion: version }) };
  const text = JSON.stringify(record);
  const data = { record: text, seal: sealOf(cluster.recordKey, { namespace, name, text }) };
  const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data };
  const { connection } = cluster;
  if (version === null) await connection.call('POST', pathOf('ConfigMap', namespace), { body });
  else await connection.call('PUT', pathOf('ConfigMap', namespace, name), { body });
}
