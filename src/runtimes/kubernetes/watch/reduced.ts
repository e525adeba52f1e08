import { createHash } from 'node:crypto';
import type { Cluster } from '../cluster.ts';
import type { KeptDeployment, RecordSummary } from '../kept.ts';
import type { ClusterObject, ConfigMap, FoundDeployment, Pod } from '../kinds.ts';
import { FIELD_MANAGER, LABEL } from '../labels.ts';
import { CONTAINER } from '../objects.ts';
import { isPresent } from '../pods.ts';
import { fromRecordIn, hasPorts, type KeptRelease, type ServiceRecord } from '../record/index.ts';
import { leastOf } from '../scaling.ts';

/** Characters of a message of the cluster that are kept. */
const MOST_CHARACTERS = 1000;

/** Returns what is kept of a pod of a service: what `pods.ts` reads. Runs of jobs are none. */
export function reducePod(object: ClusterObject): Pod | null {
  const { metadata, status = {} } = object as Pod;
  if (!isPresent(object as Pod) || metadata.labels?.[LABEL.task] !== undefined) return null;
  const container = status.containerStatuses?.find(({ name }) => name === CONTAINER);
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...named(metadata), creationTimestamp: metadata.creationTimestamp ?? '' },
    spec: { containers: [{ name: CONTAINER }] },
    status: {
      ...(status.phase ? { phase: status.phase } : {}),
      conditions: (status.conditions ?? []).filter(isTold).map(shortened),
      containerStatuses: container ? [shortContainer(container)] : [],
    },
  };
}

type Condition = NonNullable<NonNullable<Pod['status']>['conditions']>[number];
type ContainerStatus = NonNullable<NonNullable<Pod['status']>['containerStatuses']>[number];

const isTold = ({ type, status }: Condition): boolean =>
  type === 'Ready' || (type === 'PodScheduled' && status === 'False');

const shortened = ({ type, status, reason, message }: Condition): Condition => ({
  type,
  status,
  ...(status === 'False' && reason ? { reason: short(reason) } : {}),
  ...(status === 'False' && message ? { message: short(message) } : {}),
});

const short = (text: string): string => String(text).slice(0, MOST_CHARACTERS);

function shortContainer({ name, ready, restartCount, state, lastState }: ContainerStatus): ContainerStatus {
  return { name, ready, restartCount, ...(state ? { state: shortState(state) } : {}), ...(lastState ? { lastState: shortState(lastState) } : {}) }; // prettier-ignore
}

/** Shortens all texts of a state. */
const shortState = (state: NonNullable<ContainerStatus['state']>): NonNullable<ContainerStatus['state']> =>
  JSON.parse(
    JSON.stringify(state, (key, value: unknown) =>
      key === 'containerID' ? undefined : typeof value === 'string' ? short(value) : value,
    ),
  ) as typeof state;

/** Returns what is kept of a Deployment: what a rollout and drift are told by. */
export function reduceDeployment(object: ClusterObject): KeptDeployment | null {
  const { metadata, spec, status = {} } = object as FoundDeployment;
  if (metadata.deletionTimestamp) return null;
  const generation = spec.template.metadata.labels?.[LABEL.generation] ?? '';
  const { observedGeneration, replicas, updatedReplicas, readyReplicas, availableReplicas, conditions = [] } = status;
  const counts = Object.entries({ observedGeneration, replicas, updatedReplicas, readyReplicas, availableReplicas });
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { ...named(metadata), generation: metadata.generation ?? 0 },
    spec: {
      ...(spec.replicas === undefined ? {} : { replicas: spec.replicas }),
      progressDeadlineSeconds: spec.progressDeadlineSeconds,
      template: { metadata: { labels: { [LABEL.generation]: generation }, annotations: {} }, spec: { containers: [] } },
    },
    status: {
      ...Object.fromEntries(counts.filter(([, count]) => count !== undefined)),
      conditions: conditions
        .filter(({ type, status: is, reason }) =>
          type === 'Progressing' ? reason === 'ProgressDeadlineExceeded' : type === 'ReplicaFailure' && is === 'True',
        )
        .map(({ type, status: is, reason, message }) => ({
          type,
          status: is,
          ...(reason ? { reason: short(reason) } : {}),
          ...(type === 'ReplicaFailure' && message ? { message: short(message) } : {}),
        })),
    },
    owners: ownersOf(metadata),
  };
}

/** Returns a digest of who owns which fields besides the status, and of what changes with their values. */
export function ownersOf({ managedFields = [], generation, labels, annotations }: ClusterObject['metadata']): string {
  const owned = managedFields
    .filter(({ subresource, manager }) => subresource !== 'status' && manager !== 'kube-controller-manager')
    .map(({ manager, operation, subresource, fieldsV1 }) => [manager, operation, subresource, fieldsV1]);
  // Whoever sets a field back owns it as before; the generation counts changes of the specification, and of nothing else.
  const text = JSON.stringify([owned, generation, labels, annotations]);
  return createHash('sha256').update(text).digest('base64').slice(0, 12);
}

/** Returns what is kept of a record; null for another ConfigMap. */
export const reduceRecord = (cluster: Cluster, object: ClusterObject): RecordSummary | null =>
  fromRecordIn(cluster, object as ConfigMap, summaryOf);

/** Returns what is kept of a Service: whether we still own what leads to the pods. */
export function reduceService({ metadata }: ClusterObject): { isOurs: boolean } | null {
  if (metadata.deletionTimestamp) return null;
  const ours = metadata.managedFields?.find(
    ({ manager, operation }) => manager === FIELD_MANAGER && operation === 'Apply',
  );
  const spec = ours?.fieldsV1?.['f:spec'] ?? {};
  return { isOurs: ['f:ports', 'f:selector', 'f:type'].every((name) => name in spec) };
}

function named({ name, namespace, labels }: ClusterObject['metadata']): ClusterObject['metadata'] {
  const generation = labels?.[LABEL.generation];
  return {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(generation === undefined ? {} : { labels: { [LABEL.generation]: generation } }),
  };
}

/** Returns what observation needs of a record. */
export const summaryOf = (
  { generation, isStopped, serving, candidate }: ServiceRecord,
  isSealed: boolean,
): RecordSummary => ({
  isSealed,
  generation,
  isStopped,
  serving: serving && releaseSummary(serving),
  candidate: candidate && releaseSummary(candidate),
});

const releaseSummary = (release: KeptRelease) => ({
  generation: release.generation,
  replicas: leastOf(release),
  isScaled: release.autoscaler !== undefined,
  hasPorts: hasPorts(release),
});
