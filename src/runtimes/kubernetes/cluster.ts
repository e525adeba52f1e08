import type { Connection } from './connection.ts';
import { unlessGone } from './errors.ts';
import type { KeptObjects } from './kept.ts';
import type { ClusterObject } from './kinds.ts';
import { FIELD_MANAGER } from './labels.ts';
import { readPages } from './pages.ts';

/** Cluster as the parts of the runtime use it. */
export interface Cluster {
  connection: Connection;
  installation: string;
  /** Key that seals the records of services in this cluster. */
  recordKey: Buffer;
  /** Objects of the installation, where they are watched. */
  cache?: KeptObjects;
  /** Absolute path of the program helm; null if this machine has none. */
  helm?: string | null;
}

/** Paths of the objects of each kind, below the API server's root. */
const GROUPS: Record<string, string> = {
  Certificate: '/apis/cert-manager.io/v1/certificates',
  ClusterIssuer: '/apis/cert-manager.io/v1/clusterissuers',
  ConfigMap: '/api/v1/configmaps',
  CronJob: '/apis/batch/v1/cronjobs',
  DaemonSet: '/apis/apps/v1/daemonsets',
  Deployment: '/apis/apps/v1/deployments',
  EndpointSlice: '/apis/discovery.k8s.io/v1/endpointslices',
  Event: '/api/v1/events',
  GRPCRoute: '/apis/gateway.networking.k8s.io/v1/grpcroutes',
  Gateway: '/apis/gateway.networking.k8s.io/v1/gateways',
  GatewayClass: '/apis/gateway.networking.k8s.io/v1/gatewayclasses',
  HTTPRoute: '/apis/gateway.networking.k8s.io/v1/httproutes',
  HorizontalPodAutoscaler: '/apis/autoscaling/v2/horizontalpodautoscalers',
  Ingress: '/apis/networking.k8s.io/v1/ingresses',
  IngressClass: '/apis/networking.k8s.io/v1/ingressclasses',
  ListenerSet: '/apis/gateway.networking.k8s.io/v1/listenersets',
  Job: '/apis/batch/v1/jobs',
  Namespace: '/api/v1/namespaces',
  NetworkPolicy: '/apis/networking.k8s.io/v1/networkpolicies',
  Node: '/api/v1/nodes',
  NodeMetrics: '/apis/metrics.k8s.io/v1beta1/nodes',
  PersistentVolumeClaim: '/api/v1/persistentvolumeclaims',
  Pod: '/api/v1/pods',
  PodDisruptionBudget: '/apis/policy/v1/poddisruptionbudgets',
  PodMetrics: '/apis/metrics.k8s.io/v1beta1/pods',
  ScaledObject: '/apis/keda.sh/v1alpha1/scaledobjects',
  Secret: '/api/v1/secrets',
  Service: '/api/v1/services',
  StatefulSet: '/apis/apps/v1/statefulsets',
  TriggerAuthentication: '/apis/keda.sh/v1alpha1/triggerauthentications',
};

export type Kind = keyof typeof GROUPS;

/** Kinds of autoscalers, of which a service has one at most. */
export const AUTOSCALERS: readonly Kind[] = ['HorizontalPodAutoscaler', 'ScaledObject'];

/** Returns the API of a kind, such as `apps/v1`; null for a kind that this program does not know. */
export const apiOf = (kind: Kind): string | null =>
  GROUPS[kind]?.replace(/^\/apis?\//, '').replace(/\/[^/]+$/, '') ?? null;

/** Number of objects in a page of a list: some 15 KB each, well below the longest answer that is read. */
const PAGE = 50;

/** Returns the path of a kind's objects: of one, of all of a namespace, or of the whole cluster. */
export function pathOf(kind: Kind, namespace?: string, name?: string): string {
  const whole = GROUPS[kind]!;
  const at = whole.lastIndexOf('/');
  const collection =
    namespace === undefined ? whole : `${whole.slice(0, at)}/namespaces/${namespace}${whole.slice(at)}`;
  return name === undefined ? collection : `${collection}/${name}`;
}

/** Returns an object; null if there is none. */
export const find = <T extends ClusterObject>(
  { connection }: Cluster,
  kind: Kind,
  namespace: string | undefined,
  name: string,
  signal?: AbortSignal,
): Promise<T | null> => unlessGone(connection.get<T>(pathOf(kind, namespace, name), signal ? { signal } : {}));

/** Returns all objects of a selector, page by page; of an object that is too large to be read its metadata. */
export async function list<T extends ClusterObject>(
  { connection }: Cluster,
  kind: Kind,
  namespace: string | undefined,
  labelSelector: string,
): Promise<T[]> {
  const found: T[] = [];
  for await (const { items, large } of readPages<T>(connection, pathOf(kind, namespace), {
    labelSelector,
    limit: PAGE,
  }))
    found.push(...items, ...(large as T[]));
  return found;
}

interface ApplyOptions {
  /** True if the server only tells what the object would become. */
  isDryRun?: boolean;
  signal?: AbortSignal;
  fieldManager?: string;
}

/**
 * Applies an object on the server: fields that are ours become as given, those of others stay. With a `resourceVersion` it is refused
 * (409) if the object has changed since it was read.
 */
export const apply = <T extends ClusterObject>(
  { connection }: Cluster,
  object: ClusterObject,
  { isDryRun = false, signal, fieldManager = FIELD_MANAGER }: ApplyOptions = {},
): Promise<T> =>
  connection.call<T>('PATCH', pathOf(object.kind, object.metadata.namespace, object.metadata.name), {
    body: object,
    type: 'application/apply-patch+yaml',
    query: { fieldManager, force: true, ...(isDryRun ? { dryRun: 'All' } : {}) },
    ...(signal ? { signal } : {}),
  });

/**
 * Removes an object with everything that it made. Succeeds if there is none. A Job is gone after its pod, so that it makes no other. With the
 * object as it was read (`present`), the cluster refuses (409) if it has changed since.
 */
export const remove = async (
  { connection }: Cluster,
  kind: Kind,
  namespace: string | undefined,
  name: string,
  present?: ClusterObject,
): Promise<void> => {
  const { uid, resourceVersion } = present?.metadata ?? {};
  await unlessGone(
    connection.call('DELETE', pathOf(kind, namespace, name), {
      body: {
        propagationPolicy: kind === 'Job' ? 'Foreground' : 'Background',
        ...(present ? { preconditions: { uid, resourceVersion } } : {}),
      },
    }),
  );
};
