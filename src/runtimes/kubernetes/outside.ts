import { setTimeout as sleep } from 'node:timers/promises';
import type { CertificateStatus } from '#runtimes/router.ts';
import type { RuntimeContext, WorkloadIdentity } from '#runtimes/runtime.ts';
import { list, type Cluster, type Kind } from './cluster.ts';
import { asRuntimeError } from './errors.ts';
import { API, extensionsOf } from './extensions.ts';
import type { ClusterObject, Condition } from './kinds.ts';
import { LABEL, namespaceOf, ofService } from './labels.ts';
import { whyUnsecured } from './routing.ts';

/** Milliseconds that Gateways and load balancers have for their answer before the deployment's log says that there is none. */
const ANSWER_MS = 10_000;
const LOOK_MS = 500;

/** State of a way into a service: its sentence for the log, and whether it is final. */
interface Finding {
  line: string | null;
  isFinal: boolean;
}

/** Tells in the deployment's log how a service is reached from outside, and what keeps it from being reached. Its pods serve already. */
export async function tellOutside(
  cluster: Cluster,
  identity: WorkloadIdentity,
  objects: readonly string[],
  context: RuntimeContext,
): Promise<void> {
  try {
    for (const end = Date.now() + ANSWER_MS; ; await sleep(LOOK_MS, undefined, { signal: context.signal })) {
      const findings = await look(cluster, identity, objects);
      if (!findings.every(({ isFinal }) => isFinal) && Date.now() < end) continue;
      for (const { line } of findings) if (line !== null) context.log(line);
      return;
    }
  } catch (error) {
    if (context.signal.aborted) return;
    context.log(`Whether the service is reached from outside is not known: ${asRuntimeError(error).message}`);
  }
}

async function look(cluster: Cluster, identity: WorkloadIdentity, objects: readonly string[]): Promise<Finding[]> {
  const find = <T extends ClusterObject>(kind: Kind): Promise<T[]> =>
    objects.some((name) => name.startsWith(`${kind}/`) && (kind !== 'Service' || /-(tcp|udp)$/.test(name)))
      ? list<T>(cluster, kind, namespaceOf(identity), ofService(identity))
      : Promise.resolve([]);
  const [http, grpc, listeners, services, certificates] = await Promise.all([
    find<RouteObject>('HTTPRoute'),
    find<RouteObject>('GRPCRoute'),
    find<ListenerSetObject>('ListenerSet'),
    find<ServiceObject>('Service'),
    find<CertificateObject>('Certificate'),
  ]);
  return [
    ...[...http, ...grpc].flatMap(findingsOfRoute),
    ...listeners.map(findingOfListeners),
    ...services.filter(({ spec }) => spec.type === 'LoadBalancer').map(findingOfService),
    ...certificates.map(findingOfCertificate),
  ];
}

interface ParentReference {
  kind?: string;
  name: string;
  namespace?: string;
}

export interface RouteObject extends ClusterObject {
  spec: { hostnames: string[]; parentRefs: ParentReference[] } & Record<string, unknown>;
  status?: { parents?: { parentRef: ParentReference; conditions?: Condition[] }[] };
}

/** Remedies for refusals of a Gateway, by their reason. */
const REMEDIES: Record<string, (route: RouteObject) => string> = {
  NotAllowedByListeners: ({ metadata }) =>
    `Let its listeners take routes of the namespace ${metadata.namespace} (allowedRoutes.namespaces).`,
  NoMatchingListenerHostname: () => 'Give it a listener for these hosts.',
  NoMatchingParent: () => 'Give it a listener for HTTP.',
};

/** Tells what each parent of a route says of it. */
function findingsOfRoute(route: RouteObject): Finding[] {
  const hosts = route.spec.hostnames.join(', ');
  return route.spec.parentRefs.map((reference) => {
    const parent = parentOf(reference, route);
    const conditions = route.status?.parents?.find(
      ({ parentRef }) => parentOf(parentRef, route) === parent,
    )?.conditions;
    const isCurrent = (one: Condition) => (one.observedGeneration ?? 0) >= (route.metadata.generation ?? 0);
    const [accepted, resolved] = ['Accepted', 'ResolvedRefs'].map((name) =>
      conditions?.find((one) => one.type === name && isCurrent(one)),
    );
    if (!accepted)
      return { line: `${parent} has not answered yet whether it leads ${hosts} to the service.`, isFinal: false };
    const refusal = [accepted, resolved].find((one) => one?.status === 'False');
    if (!refusal) return { line: null, isFinal: true };
    const remedy = REMEDIES[refusal.reason ?? '']?.(route) ?? '';
    return {
      line: `${parent} does not lead ${hosts} to the service: ${reasonOf(refusal)} ${remedy}`.trim(),
      isFinal: true,
    };
  });
}

interface ListenerSetObject extends ClusterObject {
  spec: { parentRef: ParentReference; listeners: { hostname: string }[] };
  status?: { conditions?: Condition[] };
}

/** Tells whether a Gateway takes the listeners of hosts. Traefik accepts routes to ListenerSets, which it does not know. */
function findingOfListeners({ metadata, spec, status }: ListenerSetObject): Finding {
  const hosts = spec.listeners.map(({ hostname }) => hostname).join(', ');
  const gateway = `Gateway ${spec.parentRef.namespace ?? metadata.namespace}/${spec.parentRef.name}`;
  const accepted = status?.conditions?.find(({ type }) => type === 'Accepted');
  if (accepted?.status === 'True') return { line: null, isFinal: true };
  if (accepted?.status === 'False')
    return { line: `${gateway} does not serve ${hosts} by HTTPS: ${reasonOf(accepted)}`, isFinal: true };
  return {
    line: `${gateway} does not serve ${hosts} by HTTPS with its certificate yet: it has not taken the ListenerSet ${metadata.name}. Traefik takes none: use its Ingress for certificates of domains.`,
    isFinal: false,
  };
}

const parentOf = ({ kind = 'Gateway', name, namespace }: ParentReference, { metadata }: RouteObject): string =>
  `${kind} ${namespace ?? metadata.namespace}/${name}`;

/** Returns the reason of a condition as a sentence. */
const reasonOf = ({ reason, message }: Condition): string =>
  `${(message || reason || 'it gives no reason').slice(0, MOST_TEXT).replace(/\.$/, '')}.`;

/** Characters of a text of the cluster that are told. */
const MOST_TEXT = 500;

interface ServiceObject extends ClusterObject {
  spec: {
    type: string;
    /** The name of a port is that of the service behind a `p`: `p5432`. */
    ports: { name: string; port: number; nodePort?: number; protocol: string }[];
  } & Record<string, unknown>;
  status?: { loadBalancer?: { ingress?: { ip?: string; hostname?: string }[] } };
}

/** Tells the address of public TCP or UDP ports; without a load balancer every node leads to them at a port of its own. */
function findingOfService({ metadata, spec, status }: ServiceObject): Finding {
  const [at] = status?.loadBalancer?.ingress ?? [];
  const address = at?.ip ?? at?.hostname;
  if (address !== undefined)
    return {
      line: spec.ports
        .map(({ name, port, protocol }) => `${protocol} ${name.slice(1)} is reached at ${address}:${port}.`)
        .join(' '),
      isFinal: true,
    };
  const ports = spec.ports.map(({ name, nodePort, protocol }) => `${protocol} ${name.slice(1)} at port ${nodePort}`);
  return {
    line: `No load balancer has given the Service ${metadata.name} an address yet. Until then every node leads to ${ports.join(', ')}.`,
    isFinal: false,
  };
}

interface CertificateObject extends ClusterObject {
  spec: { dnsNames: string[] } & Record<string, unknown>;
  status?: { conditions?: Condition[]; notAfter?: string };
}

/** Tells of a certificate that is not there; authorities take longer than a deployment waits. */
function findingOfCertificate(certificate: CertificateObject): Finding {
  const { host, state, lastError } = statusOf(certificate);
  if (state === 'ISSUED') return { line: null, isFinal: true };
  const line =
    state === 'FAILED'
      ? `The certificate of ${host} was not obtained: ${lastError} It is tried again by itself.`
      : `The certificate of ${host} is being obtained.`;
  return { line, isFinal: true };
}

function statusOf({ spec, status }: CertificateObject): CertificateStatus {
  const [host = ''] = spec.dnsNames;
  const conditionOf = (name: string) => status?.conditions?.find(({ type }) => type === name);
  const expiry = status?.notAfter === undefined ? Number.NaN : Date.parse(status.notAfter);
  const expiresAt = Number.isFinite(expiry) ? expiry : null;
  const issuing = conditionOf('Issuing');
  const lastError = issuing?.status === 'False' && issuing.reason === 'Failed' ? reasonOf(issuing) : null;
  if (conditionOf('Ready')?.status === 'True') return { host, state: 'ISSUED', expiresAt, lastError };
  return { host, state: lastError === null ? 'PENDING' : 'FAILED', expiresAt, lastError };
}

/** Returns the states of the certificates of hosts (`Runtime.certificates`). */
export async function readCertificates(cluster: Cluster, hosts: string[]): Promise<CertificateStatus[]> {
  const extensions = await extensionsOf(cluster);
  const mine = `${LABEL.installation}=${cluster.installation}`;
  const found = extensions.apis.has(API.certificates)
    ? await list<CertificateObject>(cluster, 'Certificate', undefined, mine)
    : [];
  const states = Map.groupBy(found.map(statusOf), ({ host }) => host);
  const lastError = whyUnsecured(extensions);
  const none = { state: lastError === null ? 'PENDING' : 'UNSUPPORTED', expiresAt: null, lastError } as const;
  return hosts.map((host) => {
    const all = states.get(host) ?? [];
    // A domain that moved between services has two for a while.
    return all.find(({ state }) => state === 'ISSUED') ?? all[0] ?? { host, ...none };
  });
}
