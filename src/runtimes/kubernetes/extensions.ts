import { apiOf, list, type Cluster, type Kind } from './cluster.ts';
import { isUnavailable, unlessGone } from './errors.ts';
import { Findings } from './findings.ts';
import type { ClusterObject } from './kinds.ts';

/** APIs that a cluster may have besides those of Kubernetes itself. */
export const API = {
  certificates: 'cert-manager.io/v1',
  gateways: 'gateway.networking.k8s.io/v1',
  keda: 'keda.sh/v1alpha1',
  metrics: 'metrics.k8s.io/v1beta1',
} as const;

/** Labels by which the operator of a cluster chooses what the services use. Their value is `true`. */
export const CHOSEN = {
  gateway: 'quarterdeck.gateway',
  ingressClass: 'quarterdeck.ingress-class',
  issuer: 'quarterdeck.issuer',
} as const;

/** Gateway that routes are attached to. */
export interface ChosenGateway {
  name: string;
  namespace: string;
}

/** APIs of a cluster. Every account may ask for them. */
export interface Apis {
  /** Group and version of each API, such as `keda.sh/v1alpha1`. */
  apis: ReadonlySet<string>;
  hasGrpcRoutes: boolean;
  /** True if services may add listeners to a Gateway. */
  hasListenerSets: boolean;
}

/** Extensions of a cluster, and the objects in it that its operator chose. */
export interface Extensions extends Apis {
  /** True if metrics are answered now, not only registered. */
  hasMetrics: boolean;
  gateways: ChosenGateway[];
  /** Number of Gateways in the cluster, chosen or not. */
  gatewayCount: number;
  /** Names of all ingress classes. */
  ingressClasses: string[];
  /** Ingress class to name; null for the default of the cluster. */
  ingressClass: string | null;
  /** True if an Ingress gets a class, named or by default: an ingress controller serves it then. */
  hasIngress: boolean;
  /** ClusterIssuer of cert-manager that signs certificates; null if none is chosen. */
  issuer: string | null;
}

/** Cluster with Kubernetes' own APIs only. */
export const BARE: Extensions = {
  apis: new Set(),
  hasMetrics: false,
  hasGrpcRoutes: false,
  hasListenerSets: false,
  gateways: [],
  gatewayCount: 0,
  ingressClasses: [],
  ingressClass: null,
  hasIngress: false,
  issuer: null,
};

/** Gateways that a route is attached to at most, the limit of the API. */
const MOST_GATEWAYS = 32;

/** Deployments make some twenty calls, of which these should not be a quarter. */
const apis = new Findings<Apis>(lookForApis);
const extensions = new Findings<Extensions>(look);

/** Returns the APIs of a cluster as they were within the last 30 seconds. It takes no rights to the objects of any. */
export const apisOf = (cluster: Cluster): Promise<Apis> => apis.recent(cluster);

/** Returns the extensions of a cluster as they were within the last 30 seconds. */
export const extensionsOf = (cluster: Cluster): Promise<Extensions> => extensions.recent(cluster);

/** Looks for the extensions of a cluster now. */
export const findExtensions = (cluster: Cluster): Promise<Extensions> => extensions.fresh(cluster);

async function lookForApis(cluster: Cluster): Promise<Apis> {
  const found = await listApis(cluster);
  const routing = found.has(API.gateways) ? await listResources(cluster, API.gateways) : [];
  return {
    apis: found,
    hasGrpcRoutes: routing.includes('grpcroutes'),
    hasListenerSets: routing.includes('listenersets'),
  };
}

async function look(cluster: Cluster): Promise<Extensions> {
  const found = await apis.fresh(cluster);
  const has = (api: string) => found.apis.has(api);
  const none = async (): Promise<never[]> => [];
  const [hasMetrics, gateways, issuers, classes] = await Promise.all([
    has(API.metrics) ? answers(cluster, API.metrics) : false,
    has(API.gateways) ? list(cluster, 'Gateway', undefined, '') : none(),
    has(API.certificates) ? list(cluster, 'ClusterIssuer', undefined, `${CHOSEN.issuer}=true`) : none(),
    list(cluster, 'IngressClass', undefined, ''),
  ]);
  return {
    ...found,
    hasMetrics,
    gateways: gateways.filter(isChosen(CHOSEN.gateway)).map(referenceOf).toSorted(byName).slice(0, MOST_GATEWAYS),
    gatewayCount: gateways.length,
    ingressClasses: classes.map(({ metadata }) => metadata.name),
    ...chooseClass(classes),
    issuer: issuers.map(({ metadata }) => metadata.name).toSorted()[0] ?? null,
  };
}

/** Returns whether the cluster has a kind: those of Kubernetes itself are everywhere. */
export function isThere(kind: Kind, { apis: known, hasGrpcRoutes, hasListenerSets }: Apis): boolean {
  if (kind === 'GRPCRoute') return hasGrpcRoutes;
  if (kind === 'ListenerSet') return hasListenerSets;
  const api = apiOf(kind);
  return api !== null && (!(Object.values(API) as string[]).includes(api) || known.has(api));
}

const isChosen =
  (label: string) =>
  ({ metadata }: ClusterObject): boolean =>
    metadata.labels?.[label] === 'true';

const referenceOf = ({ metadata }: ClusterObject): ChosenGateway => ({
  name: metadata.name,
  namespace: metadata.namespace!,
});

const byName = (one: ChosenGateway, other: ChosenGateway): number =>
  `${one.namespace}/${one.name}`.localeCompare(`${other.namespace}/${other.name}`);

/** Annotation of the ingress class that holds for an Ingress without one. */
export const DEFAULT_CLASS = 'ingressclass.kubernetes.io/is-default-class';

/** Returns the class to name: the chosen one; none where the cluster has a default; otherwise the only one. */
function chooseClass(classes: ClusterObject[]): Pick<Extensions, 'ingressClass' | 'hasIngress'> {
  const named = classes.filter(isChosen(CHOSEN.ingressClass)).map(({ metadata }) => metadata.name);
  if (named.length > 0) return { ingressClass: named.toSorted()[0]!, hasIngress: true };
  if (classes.some(({ metadata }) => metadata.annotations?.[DEFAULT_CLASS] === 'true'))
    return { ingressClass: null, hasIngress: true };
  return { ingressClass: classes.length === 1 ? classes[0]!.metadata.name : null, hasIngress: classes.length === 1 };
}

/** Returns the groups and versions of all APIs that a cluster has. */
export async function listApis({ connection }: Cluster): Promise<Set<string>> {
  const { groups } = await connection.get<{ groups: { versions: { groupVersion: string }[] }[] }>('/apis');
  return new Set(groups.flatMap(({ versions }) => versions.map(({ groupVersion }) => groupVersion)));
}

/** Returns whether an aggregated API answers: its server may be away while it is registered. */
async function answers({ connection }: Cluster, api: string): Promise<boolean> {
  try {
    return (await unlessGone(connection.get(`/apis/${api}`))) !== null;
  } catch (error) {
    if (isUnavailable(error)) return false;
    throw error;
  }
}

async function listResources({ connection }: Cluster, api: string): Promise<string[]> {
  const { resources } = await connection.get<{ resources: { name: string }[] }>(`/apis/${api}`);
  return resources.map(({ name }) => name);
}
