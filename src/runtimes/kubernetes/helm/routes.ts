import {
  RuntimeError,
  type ChartPort,
  type ChartService,
  type ChartSpec,
  type RuntimeContext,
  type WorkloadIdentity,
} from '#runtimes/runtime.ts';
import { apply, list, remove, type Cluster } from '../cluster.ts';
import { extensionsOf, isThere, type Extensions } from '../extensions.ts';
import type { ClusterObject } from '../kinds.ts';
import { LABEL, identityLabels, namespaceOf, ofService } from '../labels.ts';
import { nameOf } from '../metadata.ts';
import { tellOutside } from '../outside.ts';
import { policyOf } from '../policies.ts';
import { WEB_KINDS, webRoutesOf, whyHostsUnsecured } from '../routing.ts';
import { isOfRelease } from './workloads.ts';

interface ServiceObject extends ClusterObject {
  spec: {
    type?: string;
    selector?: Record<string, string>;
    ports?: { name?: string; port: number; targetPort?: number | string }[];
  };
}

/** Returns the Kubernetes services of a release. Those of hooks and of other services are left out. */
async function listServices(cluster: Cluster, identity: WorkloadIdentity, release: string): Promise<ServiceObject[]> {
  const found = await list<ServiceObject>(
    cluster,
    'Service',
    namespaceOf(identity),
    'app.kubernetes.io/managed-by=Helm',
  );
  return found.filter((object) => isOfRelease(object, release));
}

/** Returns the Kubernetes services of a chart for people (`Runtime.chartServices`). */
export async function chartServices(
  cluster: Cluster,
  identity: WorkloadIdentity,
  release: string,
): Promise<ChartService[]> {
  return (await listServices(cluster, identity, release)).map(({ metadata, spec }) => ({
    name: metadata.name,
    type: spec.type ?? 'ClusterIP',
    ports: (spec.ports ?? []).map(({ name, port }) => ({ ...(name === undefined ? {} : { name }), port })),
    selectors: Object.entries(spec.selector ?? {}).map(([key, value]) => ({ key, value })),
  }));
}

/** Publishes the ports of a chart under its host names, and withdraws what earlier releases published. */
export async function applyRoutes(cluster: Cluster, spec: ChartSpec, context: RuntimeContext): Promise<void> {
  const { identity, hostname, routes, ports } = spec;
  const extensions = await extensionsOf(cluster);
  const wanted: ClusterObject[] = [];
  if (routes.length > 0) {
    const services = await listServices(cluster, identity, hostname);
    const leads = new Map(ports.map((port) => [port.id, serviceOf(port, services, spec)]));
    const names = new Map([...leads].map(([id, { metadata }]) => [id, metadata.name]));
    wanted.push(...policiesOf(spec, [...new Set(leads.values())]));
    wanted.push(...webRoutesOf({ identity, hostname, routes, ports, services: names }, extensions));
  }
  for (const object of wanted) await apply(cluster, object);
  await withdraw(cluster, identity, wanted, extensions);
  const hint = whyHostsUnsecured(spec, extensions);
  if (hint !== null) context.log(hint);
  await tellOutside(cluster, identity, wanted.map(nameOf), context);
}

/** Removes what leads to a chart from outside but the given objects. Those of the chart itself have no label of the service. */
async function withdraw(
  cluster: Cluster,
  identity: WorkloadIdentity,
  kept: ClusterObject[],
  extensions: Extensions,
): Promise<void> {
  const names = new Set(kept.map(nameOf));
  for (const kind of [...WEB_KINDS, 'NetworkPolicy'].filter((one) => isThere(one, extensions)))
    for (const { metadata } of await list(cluster, kind, namespaceOf(identity), ofService(identity)))
      if (!names.has(`${kind}/${metadata.name}`)) {
        await remove(cluster, kind, namespaceOf(identity), metadata.name);
        // Written by cert-manager, which leaves it.
        if (kind === 'Certificate') await remove(cluster, 'Secret', namespaceOf(identity), metadata.name);
      }
}

/** Finds the Kubernetes service of a port. Throws an error for people if the chart has none. */
function serviceOf({ service, internalPort }: ChartPort, services: ServiceObject[], spec: ChartSpec): ServiceObject {
  const isMeant = ({ metadata, spec: { ports = [] } }: ServiceObject) =>
    ports.some(({ port }) => port === internalPort) &&
    (typeof service === 'string'
      ? metadata.name === service
      : service.every(({ key, value }) => metadata.labels?.[key] === value));
  const found = services.find(isMeant);
  if (found) return found;
  const names = services.map(
    ({ metadata, spec: { ports = [] } }) => `${metadata.name} (${ports.map(({ port }) => port).join(', ')})`,
  );
  const wanted = typeof service === 'string' ? service : service.map(({ key, value }) => `${key}=${value}`).join(',');
  throw new RuntimeError(
    'failed',
    `The chart ${spec.title} is applied, but has no Kubernetes service ${wanted} with port ${internalPort} to publish: it has ${names.join(', ') || 'none'}. Correct the ports of the service.`,
  );
}

/** Returns the rule that pods behind routes are reached from everywhere: the ingress controller is in another namespace. */
function policiesOf({ identity, hostname }: ChartSpec, services: ServiceObject[]): ClusterObject[] {
  const namespace = namespaceOf(identity);
  return services
    .filter(({ spec }) => Object.keys(spec.selector ?? {}).length > 0)
    .slice(0, 1)
    .map(({ spec }) => {
      const metadata = { name: hostname, namespace, labels: identityLabels(identity) };
      // Pods of other services of the environment stay closed, whatever a chart selects.
      const matchExpressions = [{ key: LABEL.service, operator: 'DoesNotExist' }];
      return policyOf(metadata, { matchLabels: spec.selector, matchExpressions }, [{}]);
    });
}
