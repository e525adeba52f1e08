import { isDeepStrictEqual } from 'node:util';
import type { WorkloadIdentity } from '#runtimes/runtime.ts';
import { apply, find, list, remove, type Cluster, type Kind } from './cluster.ts';
import { apisOf, isThere } from './extensions.ts';
import { applyFenced, removeFenced, removeSelected, type Fence } from './fence.ts';
import type { ClusterObject } from './kinds.ts';
import { LABEL, namespaceOf, ofService } from './labels.ts';
import { nameOf } from './metadata.ts';
import { changeRecord, type KeptRelease, type ServiceRecord } from './record/index.ts';

/** Kinds that pods of a release need before they start. */
const NEEDED_AT_ONCE = ['Secret', 'PersistentVolumeClaim', 'TriggerAuthentication'];

interface Port {
  port: number;
  protocol: string;
}

interface ServiceObject extends ClusterObject {
  spec: { ports: Port[] } & Record<string, unknown>;
}

/** Returns whether an object is the Service by which an environment knows the service. */
const isInternal = ({ kind, metadata }: ClusterObject, { hostname }: ServiceRecord): boolean =>
  kind === 'Service' && metadata.name === hostname;

/** Returns the release that what leads to the service is kept for while a candidate gets ready; null if there is none. */
const releaseBefore = ({ serving, candidate }: ServiceRecord): KeptRelease | null =>
  candidate && serving && candidate.generation !== serving.generation ? serving : null;

/**
 * Applies the objects of a release besides its Deployment. Beside a release that serves, only those are applied that its pods need to start;
 * the others are tried by the server, so that one that it refuses fails the deployment before any pod is replaced.
 */
export async function prepare(
  cluster: Cluster,
  fence: Fence,
  record: ServiceRecord,
  objects: ClusterObject[],
): Promise<void> {
  const before = releaseBefore(record);
  // Secrets and volumes have names that no other release gives another content.
  const isOwn = ({ kind }: ClusterObject) => kind === 'Secret' || kind === 'PersistentVolumeClaim';
  for (const object of objects.filter(isOwn)) await apply(cluster, object);
  const shared = objects.filter((object) => !isOwn(object));
  const isApplied = (object: ClusterObject) =>
    !before || NEEDED_AT_ONCE.includes(object.kind) || isInternal(object, record);
  for (const object of shared)
    if (!isApplied(object) && !has(before!, object)) await apply(cluster, object, { isDryRun: true });
  const applied = shared
    .filter(isApplied)
    .map((object) => (before && isInternal(object, record) ? withBoth(object, findIn(before, object)) : object));
  await applyFenced(cluster, fence, applied);
}

const findIn = ({ manifests = [] }: KeptRelease, object: ClusterObject): ClusterObject | undefined =>
  manifests.find((one) => nameOf(one) === nameOf(object));

/** Returns whether a release has an object as it is; records leave out fields that are undefined. */
const has = (release: KeptRelease, object: ClusterObject): boolean =>
  isDeepStrictEqual(findIn(release, object), JSON.parse(JSON.stringify(object)));

/** Returns a Service with the ports of two releases, of which the first is left as it is. */
function withBoth(next: ClusterObject, before: ClusterObject | undefined): ClusterObject {
  if (!before) return next;
  const [{ spec: first }, { spec: second }] = [before as ServiceObject, next as ServiceObject];
  const isKnown = ({ port, protocol }: Port) =>
    first.ports.some((one) => one.port === port && one.protocol === protocol);
  return { ...next, spec: { ...second, ports: [...first.ports, ...second.ports.filter((port) => !isKnown(port))] } };
}

/** Returns objects with the Service of the environment at the end: routes lead to its former ports until they are changed. */
const internalLast = (objects: ClusterObject[], record: ServiceRecord): ClusterObject[] => [
  ...objects.filter((object) => !isInternal(object, record)),
  ...objects.filter((object) => isInternal(object, record)),
];

/** Leads traffic to a candidate whose pods are all ready, and removes what only releases before had. May be repeated. */
export async function publish(cluster: Cluster, fence: Fence, record: ServiceRecord): Promise<void> {
  const { candidate, made = [] } = record;
  const before = releaseBefore(record);
  // Records of earlier releases do not have them: they were applied before the Deployment then.
  if (!candidate?.objects || !candidate.manifests) return;
  const isMissing = (object: ClusterObject) =>
    isInternal(object, record) ? !has(before!, object) : !NEEDED_AT_ONCE.includes(object.kind);
  const manifests = before ? candidate.manifests.filter(isMissing) : [];
  await applyFenced(cluster, fence, internalLast(manifests, record));
  await removeMade(
    cluster,
    fence,
    made.filter((name) => !candidate.objects!.includes(name)),
  );
}

/** Makes what leads to the release before whole again, and removes what only its candidate had. May be repeated. */
export async function withdraw(cluster: Cluster, fence: Fence, record: ServiceRecord): Promise<void> {
  const { serving, made = [] } = record;
  await applyFenced(cluster, fence, internalLast(serving?.manifests ?? [], record));
  const kept = serving ? (serving.objects ?? made) : [];
  await removeMade(
    cluster,
    fence,
    made.filter((name) => !kept.includes(name)),
  );
}

/** Keeps the Service of a release whose record does not have it, to make it whole again. */
export async function keepService(
  cluster: Cluster,
  identity: WorkloadIdentity,
  record: ServiceRecord | null,
): Promise<ServiceRecord | null> {
  if (!record?.serving || record.serving.manifests) return record;
  const service = await find<ServiceObject>(cluster, 'Service', namespaceOf(identity), record.hostname);
  const manifests = service?.metadata.labels?.[LABEL.service] === identity.serviceId ? [toManifest(service)] : [];
  return changeRecord(cluster, identity, (present) =>
    present?.serving && !present.serving.manifests ? { ...present, serving: { ...present.serving, manifests } } : null,
  );
}

function toManifest({ metadata, spec }: ServiceObject): ClusterObject {
  const { name, namespace, labels = {}, annotations = {} } = metadata;
  const { type, selector } = spec;
  const ports = spec.ports.map((port) => ({ ...port, nodePort: undefined }));
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, ...(namespace === undefined ? {} : { namespace }), labels, annotations },
    spec: JSON.parse(JSON.stringify({ type, selector, ports })) as object,
  };
}

/** Returns the names of what a release may have made whose record does not tell. */
export const madeBefore = (hostname: string): string[] =>
  ['Service', 'Ingress', 'NetworkPolicy', 'Secret'].map(
    (kind) => `${kind}/${hostname}${kind === 'Secret' ? '-registry' : ''}`,
  );

/** Removes objects of a service by the names in its record. */
export async function removeMade(cluster: Cluster, fence: Fence, names: string[]): Promise<void> {
  if (names.length === 0) return;
  const apis = await apisOf(cluster);
  const references = names.map((whole) => {
    const [kind, name] = whole.split('/') as [Kind, string];
    return { kind, name };
  });
  // An API that the cluster lost took its objects along.
  await removeFenced(
    cluster,
    fence,
    references.filter(({ kind }) => isThere(kind, apis)),
  );
}

const secretsOf = (identity: WorkloadIdentity): string => `${ofService(identity)},${LABEL.generation}`;

/** Removes the Secrets of releases before the one that serves, to which nothing goes back: a later deployment does not need them either. */
export async function removeFormerSecrets(cluster: Cluster, identity: WorkloadIdentity): Promise<void> {
  const namespace = namespaceOf(identity);
  for (const secret of await list(cluster, 'Secret', namespace, secretsOf(identity)))
    if (generationIn(secret) < identity.generation) await remove(cluster, 'Secret', namespace, secret.metadata.name);
}

/** Removes the Secrets of a candidate, unless its release serves. */
export const removeSecretsOf = (cluster: Cluster, fence: Fence, { generation }: KeptRelease): Promise<void> =>
  removeSelected(cluster, fence, {
    kind: 'Secret',
    selector: secretsOf(fence.identity),
    isChosen: (secret) => generationIn(secret) === generation,
    isKept: (_secret, record) => record?.serving?.generation === generation,
  });

const generationIn = ({ metadata }: ClusterObject): number => Number(metadata.labels?.[LABEL.generation]);
