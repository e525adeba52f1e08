import type { WorkloadIdentity } from '#runtimes/runtime.ts';
import { AUTOSCALERS, apiOf, find, type Cluster, type Kind } from '../cluster.ts';
import { apisOf, isThere } from '../extensions.ts';
import type { ClusterObject, DeploymentObject, FoundDeployment } from '../kinds.ts';
import { LABEL, namespaceOf } from '../labels.ts';
import type { KeptRelease } from './types.ts';

/** Annotations of a Deployment that the cluster or kubectl writes. */
const OF_OTHERS = ['deployment.kubernetes.io/revision', 'kubectl.kubernetes.io/last-applied-configuration'];

/** Release that serves by what the cluster has of it. */
export interface FoundRelease {
  release: KeptRelease;
  /** True if it has no pods and no autoscaler that would start some. */
  isStopped: boolean;
}

/** Returns the Deployment of a service; null if there is none, or one of that name that is not the service's. */
export async function findOwnDeployment(
  cluster: Cluster,
  { serviceId, namespace }: { serviceId: string; namespace: string },
  hostname: string,
): Promise<FoundDeployment | null> {
  const present = await find<FoundDeployment>(cluster, 'Deployment', namespace, hostname);
  return present?.metadata.labels?.[LABEL.service] === serviceId ? present : null;
}

/** Returns the release of a service by its Deployment and autoscaler: its record cannot tell it. Null without a Deployment. */
export async function findRelease(
  cluster: Cluster,
  identity: WorkloadIdentity,
  hostname: string,
): Promise<FoundRelease | null> {
  const owner = { serviceId: identity.serviceId, namespace: namespaceOf(identity) };
  const present = await findOwnDeployment(cluster, owner, hostname);
  if (!present) return null;
  const apis = await apisOf(cluster);
  const kinds = AUTOSCALERS.filter((kind) => isThere(kind, apis));
  const found = await Promise.all(kinds.map((kind) => findAutoscaler(cluster, kind, present)));
  const autoscaler = found.find((one) => one?.metadata.labels?.[LABEL.service] === identity.serviceId);
  const { replicas = 1 } = present.spec;
  const isStopped = replicas === 0 && !autoscaler;
  const release = {
    generation: generationIn(present),
    // A release that was stopped starts with one pod: how many it had stood in the record.
    deployment: toApplied(present, autoscaler ? undefined : Math.max(1, replicas)),
    ...(autoscaler ? { autoscaler } : {}),
  };
  return { release, isStopped };
}

/** Returns the generation of the release of which a Deployment makes pods; 0 where that is no number. */
export function generationIn({ spec }: FoundDeployment): number {
  const generation = Number(spec.template.metadata.labels?.[LABEL.generation]);
  return Number.isSafeInteger(generation) && generation >= 0 ? generation : 0;
}

/** Returns an autoscaler of a Deployment as it could be applied; null if there is none. */
export async function findAutoscaler(
  cluster: Cluster,
  kind: Kind,
  { metadata: { namespace, name } }: FoundDeployment,
): Promise<ClusterObject | null> {
  if (!AUTOSCALERS.includes(kind)) return null;
  const found = await find(cluster, kind, namespace, name);
  if (!found) return null;
  const { labels = {}, annotations = {} } = found.metadata;
  return { apiVersion: apiOf(kind)!, kind, metadata: { name, namespace: namespace!, labels, annotations }, spec: found['spec'] }; // prettier-ignore
}

/** Returns a Deployment of the cluster as it could be applied. */
export function toApplied({ metadata, spec }: FoundDeployment, replicas: number | undefined): DeploymentObject {
  const { name, namespace, labels = {}, annotations = {} } = metadata;
  const own = Object.entries(annotations).filter(([key]) => !OF_OTHERS.includes(key));
  const { replicas: _replicas, template, ...rest } = spec;
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, ...(namespace === undefined ? {} : { namespace }), labels, annotations: Object.fromEntries(own) },
    spec: {
      ...rest,
      ...(replicas === undefined ? {} : { replicas }),
      template: {
        ...template,
        metadata: { labels: template.metadata.labels ?? {}, annotations: template.metadata.annotations ?? {} },
      },
    },
  };
}
