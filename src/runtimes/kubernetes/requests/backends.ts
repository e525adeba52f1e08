import type { Handle } from '#runtimes/runtime.ts';
import { list, type Cluster } from '../cluster.ts';
import { API, apisOf, isThere } from '../extensions.ts';
import type { ClusterObject } from '../kinds.ts';
import { LABEL, namespaceOf } from '../labels.ts';
import type { Backend, GatewayProgram, RouteKind } from './gateway-program.ts';
import type { Controllers } from './controllers.ts';

interface RouteObject extends ClusterObject {
  spec: {
    /** Parents of an HTTPRoute or GRPCRoute. */
    parentRefs?: { kind?: string; name: string; namespace?: string }[];
    rules?: {
      backendRefs?: { name: string; port?: number }[];
      /** Part of an Ingress. */
      http?: { paths: { backend: { service?: { name: string; port: { number?: number } } } }[] };
    }[];
    ingressClassName?: string;
  };
}

const KINDS: RouteKind[] = ['HTTPRoute', 'GRPCRoute', 'Ingress'];

/**
 * Returns the names that a gateway's metrics have for services, by their ids. Services that another gateway leads to as well are left out.
 * Routes count in the namespace of their environment only: labels say what their author likes.
 */
export async function namesOfBackends(
  cluster: Cluster,
  program: GatewayProgram,
  handles: Handle[],
  controllers: Controllers,
): Promise<Map<string, string[]>> {
  const namespaces = new Map(handles.map(({ identity }) => [identity.serviceId, namespaceOf(identity)]));
  const names = new Map<string, Set<string>>();
  const left = new Set<string>();
  for (const { kind, route } of await listRoutes(cluster)) {
    const serviceId = route.metadata.labels?.[LABEL.service] ?? '';
    if (namespaces.get(serviceId) !== route.metadata.namespace) continue;
    const through =
      kind === 'Ingress' ? [controllers.ofIngress(route.spec.ingressClassName)] : gatewaysOf(route, controllers);
    if (through.length === 0 || through.some((one) => one === null || !program.controllers.includes(one)))
      left.add(serviceId);
    const known = names.get(serviceId) ?? new Set<string>();
    for (const backend of backendsOf(kind, route)) known.add(program.nameOf(backend));
    names.set(serviceId, known);
  }
  return new Map([...names].filter(([id]) => !left.has(id)).map(([id, known]) => [id, [...known]]));
}

async function listRoutes(cluster: Cluster): Promise<{ kind: RouteKind; route: RouteObject }[]> {
  const apis = await apisOf(cluster);
  const mine = `${LABEL.installation}=${cluster.installation}`;
  const kinds = KINDS.filter((kind) => kind === 'Ingress' || (apis.apis.has(API.gateways) && isThere(kind, apis)));
  const lists = kinds.map(async (kind) =>
    (await list<RouteObject>(cluster, kind, undefined, mine)).map((route) => ({ kind, route })),
  );
  return (await Promise.all(lists)).flat();
}

const gatewaysOf = ({ spec, metadata }: RouteObject, controllers: Controllers): (string | null)[] =>
  (spec.parentRefs ?? [])
    .filter(({ kind = 'Gateway' }) => kind === 'Gateway')
    .map(({ name, namespace = metadata.namespace! }) => controllers.ofGateway(namespace, name));

function backendsOf(kind: RouteKind, { metadata, spec }: RouteObject): Backend[] {
  const { namespace = '' } = metadata;
  return (spec.rules ?? []).flatMap(({ backendRefs = [], http }) => [
    ...backendRefs.flatMap(({ name: service, port }) => (port === undefined ? [] : { kind, namespace, service, port })),
    ...(http?.paths ?? []).flatMap(({ backend: { service } }) =>
      service?.port.number === undefined ? [] : { kind, namespace, service: service.name, port: service.port.number },
    ),
  ]);
}
