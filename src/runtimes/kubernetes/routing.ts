import { createHash } from 'node:crypto';
import { publishedPorts, type Route, type WorkloadPort, type WorkloadSpec } from '#runtimes/runtime.ts';
import type { Kind } from './cluster.ts';
import type { ChosenGateway, Extensions } from './extensions.ts';
import type { ClusterObject } from './kinds.ts';
import { LABEL, identityLabels } from './labels.ts';
import { metadataOf } from './metadata.ts';
import { nameOfPort } from './ports.ts';
import { publicPolicy, solverPolicy } from './policies.ts';

/** Host names of a route at most, by the Gateway API. */
const MOST_HOSTS = 16;
/** Listeners of a ListenerSet at most. */
const MOST_LISTENERS = 64;

/** Service that is reached from outside by host names: a workload, or the Kubernetes services of a chart. */
export interface Published
  extends
    Pick<WorkloadSpec, 'identity' | 'hostname' | 'routes'>,
    Partial<Pick<WorkloadSpec, 'labels' | 'annotations'>> {
  ports: Pick<WorkloadPort, 'id' | 'internalPort' | 'protocol'>[];
  requestSeconds?: number;
  /** Kubernetes services that ports lead to, by the ids of the ports; the Service of the workload for all others. */
  services?: Map<string, string>;
}

/** Returns the objects by which a release is reached from outside: through the chosen Gateways, otherwise by Ingress. */
export function routesOf(spec: WorkloadSpec, extensions: Extensions): ClusterObject[] {
  const published = publishedPorts(spec.ports);
  return [
    ...(spec.routes.length > 0 || published.length > 0 ? [publicPolicy(spec)] : []),
    ...webRoutesOf(spec, extensions),
    ...(['TCP', 'UDP'] as const).flatMap((protocol) => loadBalancerOf(spec, protocol)),
  ];
}

/** Kinds of the objects of `webRoutesOf` besides its policy. */
export const WEB_KINDS: readonly Kind[] = ['Ingress', 'HTTPRoute', 'GRPCRoute', 'ListenerSet', 'Certificate'];

/** Returns the objects by which host names lead to a service, with their certificates. */
export function webRoutesOf(spec: Published, extensions: Extensions): ClusterObject[] {
  if (spec.routes.length === 0) return [];
  const secured = securedHosts(spec, extensions);
  const web = extensions.gateways.length > 0 ? gatewayRoutesOf : ingressOf;
  return [
    ...(secured.length > 0 ? [solverPolicy(spec)] : []),
    ...secured.map((host) => certificateOf(spec, host, extensions.issuer!)),
    ...web(spec, extensions, secured),
  ];
}

/** Returns the hosts of a release that get a certificate: custom domains that ask for one, where the cluster can use it. */
function securedHosts({ routes }: Published, extensions: Extensions): string[] {
  if (whyUnsecured(extensions) !== null) return [];
  return routes.filter(({ certificate }) => certificate).map(({ host }) => host);
}

/** Explains why custom domains get no certificate in a cluster, and what would change that; null if they get one. */
export function whyUnsecured({ issuer, gateways, hasListenerSets }: Extensions): string | null {
  if (issuer === null)
    return 'The cluster has no issuer of certificates: install cert-manager and label a ClusterIssuer with `quarterdeck.issuer=true`.';
  if (gateways.length > 0 && !hasListenerSets)
    return 'The Gateway takes no certificates of services: that needs ListenerSets (Gateway API 1.5). Give its own listeners a certificate.';
  return null;
}

/** Explains the hosts of a release that ask for a certificate and get none; null if there are none. */
export function whyHostsUnsecured({ routes }: Pick<Published, 'routes'>, extensions: Extensions): string | null {
  const hosts = routes.filter(({ certificate }) => certificate).map(({ host }) => host);
  const why = hosts.length === 0 ? null : whyUnsecured(extensions);
  return why === null ? null : `No certificate is obtained for ${hosts.join(', ')}. ${why}`;
}

/** Name of the Certificate of a host, and of the Secret that it is written to. */
export const certificateName = (hostname: string, host: string): string => `${hostname}-tls-${shortHash(host)}`;

const shortHash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 10);

const certificateOf = (spec: Published, host: string, issuer: string): ClusterObject => {
  const name = certificateName(spec.hostname, host);
  return {
    apiVersion: 'cert-manager.io/v1',
    kind: 'Certificate',
    metadata: metadataOf(spec, name, 'CERTIFICATES'),
    spec: {
      secretName: name,
      // The Secret is found by these when the service is removed.
      secretTemplate: { labels: identityLabels(spec.identity) },
      dnsNames: [host],
      issuerRef: { group: 'cert-manager.io', kind: 'ClusterIssuer', name: issuer },
    },
  };
};

const ingressOf = (spec: Published, { ingressClass }: Extensions, secured: string[]): ClusterObject[] => [
  {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'Ingress',
    metadata: metadataOf(spec, spec.hostname, 'INGRESS'),
    spec: {
      ...(ingressClass === null ? {} : { ingressClassName: ingressClass }),
      ...(secured.length === 0
        ? {}
        : { tls: secured.map((host) => ({ hosts: [host], secretName: certificateName(spec.hostname, host) })) }),
      rules: spec.routes.map(({ host, portId }) => ({
        host,
        http: {
          paths: [
            {
              path: '/',
              pathType: 'Prefix',
              backend: { service: { name: leadOf(spec, portId), port: { number: portOf(spec, portId).internalPort } } },
            },
          ],
        },
      })),
    },
  },
];

const portOf = ({ ports }: Published, id: string): Published['ports'][number] => ports.find((port) => port.id === id)!;

/** Returns the name of the Kubernetes service that a port leads to. */
const leadOf = ({ services, hostname }: Published, portId: string): string => services?.get(portId) ?? hostname;

/** Returns routes for each public port, and the listeners of hosts that have a certificate. */
function gatewayRoutesOf(spec: Published, extensions: Extensions, secured: string[]): ClusterObject[] {
  const listeners = listenerSetsOf(spec, extensions.gateways, secured);
  const ofPort = [...Map.groupBy(spec.routes, ({ portId }) => portId)];
  return [
    ...listeners,
    ...ofPort.flatMap(([portId, routes]) =>
      chunksOf(routes, MOST_HOSTS).map((some, n) =>
        gatewayRouteOf(spec, extensions, portOf(spec, portId), some, n, listeners),
      ),
    ),
  ];
}

function gatewayRouteOf(
  spec: Published,
  { gateways, hasGrpcRoutes }: Extensions,
  { id, internalPort, protocol }: Published['ports'][number],
  routes: Route[],
  n: number,
  listeners: ClusterObject[],
): ClusterObject {
  const isGrpc = protocol === 'GRPC' && hasGrpcRoutes;
  // Kubernetes services of a chart may have the same ports.
  const part = spec.services?.has(id) ? `${internalPort}-${shortHash(id)}` : String(internalPort);
  const name = `${spec.hostname}-${part}${n === 0 ? '' : `-${n}`}`;
  const isSecured = routes.some(({ host }) => listeners.some((set) => hostsOf(set).includes(host)));
  return {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: isGrpc ? 'GRPCRoute' : 'HTTPRoute',
    metadata: metadataOf(spec, name, 'INGRESS'),
    spec: {
      parentRefs: [
        ...gateways.map((gateway) => ({ kind: 'Gateway', ...gateway })),
        ...(isSecured ? listeners.map(({ metadata }) => ({ kind: 'ListenerSet', name: metadata.name })) : []),
      ].map((reference) => ({ group: GROUP, ...reference })),
      hostnames: routes.map(({ host }) => host),
      rules: [
        {
          backendRefs: [{ name: leadOf(spec, id), port: internalPort }],
          // Routes of gRPC have no timeouts.
          ...(isGrpc || spec.requestSeconds === undefined ? {} : { timeouts: { request: `${spec.requestSeconds}s` } }),
        },
      ],
    },
  };
}

const GROUP = 'gateway.networking.k8s.io';

/** Returns the listeners for HTTPS with the certificates of hosts, attached to each Gateway. */
const listenerSetsOf = (spec: Published, gateways: ChosenGateway[], secured: string[]): ClusterObject[] =>
  chunksOf(secured, MOST_LISTENERS).flatMap((hosts, set) =>
    gateways.map((gateway, n) => ({
      apiVersion: `${GROUP}/v1`,
      kind: 'ListenerSet',
      metadata: metadataOf(spec, `${spec.hostname}-tls-${n}${set === 0 ? '' : `-${set}`}`, 'INGRESS'),
      spec: {
        parentRef: { group: GROUP, kind: 'Gateway', ...gateway },
        listeners: hosts.map((host) => ({
          name: certificateName('h', host),
          hostname: host,
          port: 443,
          protocol: 'HTTPS',
          tls: { mode: 'Terminate', certificateRefs: [{ name: certificateName(spec.hostname, host) }] },
          allowedRoutes: { namespaces: { from: 'Same' } },
        })),
      },
    })),
  );

const hostsOf = ({ spec }: ClusterObject): string[] =>
  (spec as { listeners: { hostname: string }[] }).listeners.map(({ hostname }) => hostname);

/** Returns the Service that publishes the public ports of a protocol; a load balancer of some clouds takes one protocol only. */
function loadBalancerOf(spec: WorkloadSpec, protocol: 'TCP' | 'UDP'): ClusterObject[] {
  const ports = publishedPorts(spec.ports).filter((port) => port.protocol === protocol);
  if (ports.length === 0) return [];
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: metadataOf(spec, `${spec.hostname}-${protocol.toLowerCase()}`, 'SERVICES'),
      spec: {
        type: 'LoadBalancer',
        selector: { [LABEL.service]: spec.identity.serviceId },
        ports: ports.map(({ internalPort, externalPort }) => ({
          name: `p${internalPort}`,
          port: externalPort,
          // By name it leads to those pods only that have the port, as in the Service of the environment.
          targetPort: nameOfPort({ internalPort, protocol }),
          protocol,
        })),
      },
    },
  ];
}

function chunksOf<T>(all: T[], size: number): T[][] {
  const count = Math.ceil(all.length / size);
  return Array.from({ length: count }, (_, n) => all.slice(n * size, (n + 1) * size));
}
