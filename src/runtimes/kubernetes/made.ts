import type { WorkloadIdentity } from '#runtimes/runtime.ts';
import { list, type Cluster, type Kind } from './cluster.ts';
import { ApiError } from './errors.ts';
import { apisOf, isThere } from './extensions.ts';
import type { ClusterObject } from './kinds.ts';
import { namespaceOf, ofService } from './labels.ts';
import type { ServiceRecord } from './record/types.ts';

/** Kinds of what a service has in its namespace, in the order of removal; the record goes last, because it tells of the rest. */
export const KINDS: readonly Kind[] = [
  'Job',
  'ScaledObject',
  'HorizontalPodAutoscaler',
  'PodDisruptionBudget',
  'Deployment',
  'TriggerAuthentication',
  'HTTPRoute',
  'ListenerSet',
  'GRPCRoute',
  'Ingress',
  'Certificate',
  'NetworkPolicy',
  'Service',
  'Secret',
  'PersistentVolumeClaim',
  'ConfigMap',
];

/** Kinds that a record does not name among the objects of a release. */
const NOT_NAMED: readonly Kind[] = [
  'Job',
  'ScaledObject',
  'HorizontalPodAutoscaler',
  'Deployment',
  'Secret',
  'PersistentVolumeClaim',
  'ConfigMap',
];

/** Kinds that only some services have: an account without the right to them can have made none. */
const OF_SOME: readonly Kind[] = [
  'Job',
  'ScaledObject',
  'HorizontalPodAutoscaler',
  'PodDisruptionBudget',
  'TriggerAuthentication',
  'HTTPRoute',
  'ListenerSet',
  'GRPCRoute',
  'Ingress',
  'Certificate',
];

/** Returns objects of a kind of a service; none of one that the account may not list, unless the record tells of them. */
export async function listMade<T extends ClusterObject>(
  cluster: Cluster,
  kind: Kind,
  identity: WorkloadIdentity,
  record: ServiceRecord | null = null,
): Promise<T[]> {
  try {
    return await list<T>(cluster, kind, namespaceOf(identity), ofService(identity));
  } catch (error) {
    const isForbidden = error instanceof ApiError && error.status === 403;
    if (isForbidden && OF_SOME.includes(kind) && !tellsOf(record, kind)) return [];
    throw error;
  }
}

/** Returns whether a record tells that there are objects of a kind. */
const tellsOf = (record: ServiceRecord | null, kind: Kind): boolean =>
  [record?.serving, record?.candidate].some((release) => release?.autoscaler?.kind === kind) ||
  (record?.made ?? []).some((name) => name.startsWith(`${kind}/`));

/** Returns the names of the objects of a service's releases by their labels: its record cannot tell them. */
export async function findMade(cluster: Cluster, identity: WorkloadIdentity): Promise<string[]> {
  const apis = await apisOf(cluster);
  const kinds = KINDS.filter((kind) => !NOT_NAMED.includes(kind) && isThere(kind, apis));
  const found = await Promise.all(kinds.map((kind) => listMade(cluster, kind, identity)));
  return found.flatMap((objects, n) => objects.map(({ metadata }) => `${kinds[n]}/${metadata.name}`));
}
