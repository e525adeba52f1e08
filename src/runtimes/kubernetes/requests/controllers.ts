import { RuntimeError } from '#runtimes/runtime.ts';
import { list, type Cluster } from '../cluster.ts';
import { ApiError } from '../errors.ts';
import { API, apisOf, DEFAULT_CLASS } from '../extensions.ts';
import type { ClusterObject } from '../kinds.ts';

interface ClassObject extends ClusterObject {
  spec?: { controller?: string; controllerName?: string };
}

interface GatewayObject extends ClusterObject {
  spec?: { gatewayClassName?: string };
}

/** Controllers by which requests come into a cluster. */
export interface Controllers {
  /** Names of all of them. */
  all: Set<string>;
  /** Returns the controller of a Gateway; null if it is not known. */
  ofGateway(namespace: string, name: string): string | null;
  /** Returns the controller of an ingress class, or of the default one; null if it is not known. */
  ofIngress(className: string | undefined): string | null;
}

/** Finds the controllers of the Gateways and ingress classes of a cluster. Throws RuntimeError `refused` without the right to. */
export async function findControllers(cluster: Cluster): Promise<Controllers> {
  const { apis } = await apisOf(cluster);
  const has = apis.has(API.gateways);
  const [ingressClasses, gatewayClasses, gateways] = await Promise.all([
    list<ClassObject>(cluster, 'IngressClass', undefined, ''),
    has ? list<ClassObject>(cluster, 'GatewayClass', undefined, '').catch(refusedIfForbidden) : [],
    has ? list<GatewayObject>(cluster, 'Gateway', undefined, '') : [],
  ]);
  const ofClass = new Map(gatewayClasses.map(({ metadata, spec }) => [metadata.name, spec?.controllerName ?? null]));
  const ofGateway = new Map(
    gateways.map(({ metadata, spec }) => [
      `${metadata.namespace}/${metadata.name}`,
      ofClass.get(spec?.gatewayClassName ?? '') ?? null,
    ]),
  );
  const ofIngress = new Map(ingressClasses.map(({ metadata, spec }) => [metadata.name, spec?.controller ?? null]));
  const byDefault = ingressClasses.find(({ metadata }) => metadata.annotations?.[DEFAULT_CLASS] === 'true');
  return {
    all: new Set([...ofGateway.values(), ...ofIngress.values()].filter((one) => one !== null)),
    ofGateway: (namespace, name) => ofGateway.get(`${namespace}/${name}`) ?? null,
    ofIngress: (className = byDefault?.metadata.name ?? '') => ofIngress.get(className) ?? null,
  };
}

function refusedIfForbidden(error: unknown): never {
  if (error instanceof ApiError && error.status === 403)
    throw new RuntimeError('refused', 'The account of the kubeconfig may not list GatewayClasses.', error);
  throw error;
}
