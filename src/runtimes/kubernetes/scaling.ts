import { setTimeout as sleep } from 'node:timers/promises';
import { RuntimeError, type WorkloadSpec } from '#runtimes/runtime.ts';
import { AUTOSCALERS, apply, find, type Cluster } from './cluster.ts';
import { apisOf, isThere } from './extensions.ts';
import { applyFenced, removeFenced, type Fence } from './fence.ts';
import type { ClusterObject, DeploymentObject, FoundDeployment } from './kinds.ts';
import { SCALING_MANAGER, FIELD_MANAGER, LABEL, namespaceOf } from './labels.ts';
import type { KeptRelease } from './record/types.ts';

/** Numbers of pods between which an autoscaler of the cluster chooses. */
export interface Bounds {
  min: number;
  max: number;
}

/** Returns whether the cluster chooses the number of pods by their load. Two pods must not write to one volume, and nothing is measured of none. */
export const isScaled = (spec: WorkloadSpec): boolean => {
  const { instances, scaling, storage } = spec;
  return (
    !isEventScaled(spec) &&
    scaling !== undefined &&
    instances.min > 0 &&
    instances.max > instances.min &&
    storage.length === 0
  );
};

/** Returns whether the number of pods follows events: a scaler that is switched off scales nothing. */
export const isEventScaled = ({ eventScaling }: WorkloadSpec): boolean => (eventScaling?.scalers.length ?? 0) > 0;

/** Explains why a service whose `max` is larger than its `min` is not scaled by load; null where it is, or asks for nothing. */
export function whyNotScaled(spec: WorkloadSpec, hasMetrics: boolean): string | null {
  const { min, max } = spec.instances;
  if (max <= min || isEventScaled(spec)) return null;
  if (spec.storage.length > 0)
    return `${min} ${min === 1 ? 'instance runs' : 'instances run'}, whatever the load: the service has volumes, and two instances must not write to one.`;
  if (min === 0) return 'No instance runs: min_running_instances is 0, and load is measured of running instances only.';
  if (!hasMetrics)
    return `The cluster does not measure pods, so that ${min} of at most ${max} instances run: install metrics-server.`;
  return null;
}

/** Returns the HorizontalPodAutoscaler of a release. */
export function autoscalerOf(spec: WorkloadSpec, metadata: ClusterObject['metadata']): ClusterObject {
  const { cpuPercent, memoryPercent } = spec.scaling!;
  return {
    apiVersion: 'autoscaling/v2',
    kind: 'HorizontalPodAutoscaler',
    metadata,
    spec: {
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: spec.hostname },
      minReplicas: spec.instances.min,
      maxReplicas: spec.instances.max,
      metrics: [
        resourceOf('cpu', cpuPercent),
        ...(memoryPercent === null ? [] : [resourceOf('memory', memoryPercent)]),
      ],
    },
  };
}

const resourceOf = (name: string, averageUtilization: number) => ({
  type: 'Resource',
  resource: { name, target: { type: 'Utilization', averageUtilization } },
});

/** Returns the budget by which a drained node ends one pod of a service at a time. Pods that are not ready hold no drain up. */
export const budgetOf = (spec: WorkloadSpec, metadata: ClusterObject['metadata']): ClusterObject => ({
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata,
  spec: {
    maxUnavailable: 1,
    unhealthyPodEvictionPolicy: 'AlwaysAllow',
    selector: { matchLabels: { [LABEL.service]: spec.identity.serviceId } },
  },
});

/** Returns between which numbers of pods the autoscaler of a release chooses; null if the release has a fixed number. */
export function boundsOf({ autoscaler }: Pick<KeptRelease, 'autoscaler'>): Bounds | null {
  if (!autoscaler) return null;
  const spec = autoscaler['spec'] as Record<string, number>;
  return autoscaler.kind === 'ScaledObject'
    ? { min: spec['minReplicaCount']!, max: spec['maxReplicaCount']! }
    : { min: spec['minReplicas']!, max: spec['maxReplicas']! };
}

/** Returns the smallest number of ready pods with which a release is complete. */
export const leastOf = (release: Pick<KeptRelease, 'autoscaler' | 'deployment'>): number =>
  boundsOf(release)?.min ?? release.deployment.spec.replicas ?? 0;

/** Applies the autoscaler of a release, and removes those that it does not have. */
export async function applyAutoscaler(
  cluster: Cluster,
  fence: Fence,
  { autoscaler, deployment }: Pick<KeptRelease, 'autoscaler' | 'deployment'>,
): Promise<void> {
  await removeAutoscalers(cluster, fence, deployment.metadata.name, autoscaler?.kind);
  if (autoscaler) await applyFenced(cluster, fence, [autoscaler]);
}

/** Milliseconds that KEDA has to let a ScaledObject go, and between two looks. */
const GONE_MS = 60_000;
const LOOK_MS = 250;

/** Removes the autoscalers of a service but those of one kind, and waits until they are gone: KEDA scales until its finalizer is removed. */
export async function removeAutoscalers(cluster: Cluster, fence: Fence, name: string, kept?: string): Promise<void> {
  const apis = await apisOf(cluster);
  const kinds = AUTOSCALERS.filter((kind) => kind !== kept && isThere(kind, apis));
  await removeFenced(
    cluster,
    fence,
    kinds.map((kind) => ({ kind, name })),
  );
  if (kinds.includes('ScaledObject')) await untilLetGo(cluster, namespaceOf(fence.identity), name);
}

/** Waits until KEDA has removed its finalizer from a ScaledObject that was deleted. */
export async function untilLetGo(cluster: Cluster, namespace: string, name: string): Promise<void> {
  for (const end = Date.now() + GONE_MS; ; await sleep(LOOK_MS)) {
    if (!(await find(cluster, 'ScaledObject', namespace, name))) return;
    if (Date.now() > end)
      throw new RuntimeError(
        'failed',
        `KEDA does not let the ScaledObject ${name} go within ${GONE_MS / 1000} s and may scale the service again: see whether its operator runs, then try again.`,
      );
  }
}

/**
 * Leaves the number of pods to the autoscaler: moves it between the bounds where it is not, and gives it up as a field of ours without
 * changing it. A field that is given up by its only owner would fall back to 1.
 */
export async function handOverReplicas(
  cluster: Cluster,
  deployment: DeploymentObject,
  present: FoundDeployment,
  { min, max }: Bounds,
): Promise<FoundDeployment> {
  const replicas = Math.min(max, Math.max(min, present.spec.replicas ?? 1));
  if (replicas === present.spec.replicas && !ownsReplicas(present)) return present;
  const { name, namespace } = deployment.metadata;
  const { apiVersion, kind } = deployment;
  const metadata = { name, namespace, resourceVersion: present.metadata.resourceVersion };
  return apply<FoundDeployment>(
    cluster,
    { apiVersion, kind, metadata, spec: { replicas } },
    { fieldManager: SCALING_MANAGER },
  );
}

const ownsReplicas = ({ metadata }: FoundDeployment): boolean =>
  metadata.managedFields?.some(({ manager, fieldsV1 }) => {
    const spec = fieldsV1?.['f:spec'];
    return manager === FIELD_MANAGER && typeof spec === 'object' && spec !== null && 'f:replicas' in spec;
  }) ?? false;
