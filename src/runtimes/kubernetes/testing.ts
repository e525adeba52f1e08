import { request } from 'undici';
import type { HttpAnswer } from '#runtimes/contract/memory-router.ts';
import type { WorkloadIdentity } from '#runtimes/runtime.ts';
import { list, type Cluster, type Kind } from './cluster.ts';
import { ApiError } from './errors.ts';
import type { ClusterObject } from './kinds.ts';
import { LABEL } from './labels.ts';

interface IngressObject extends ClusterObject {
  spec: { rules: { host: string; http: { paths: { backend: { service: { name: string } } }[] } }[] };
}

interface EndpointSlice extends ClusterObject {
  endpoints?: { addresses: string[]; conditions: { ready?: boolean } }[];
  ports?: { port: number }[];
}

/** Gateway of the tests: follows Ingress objects and endpoints as an ingress controller does, anew for each request. */
export class TestGateway {
  readonly #cluster: Cluster;
  #turn = 0;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  /** Sends a GET: 404 for an unknown host, 503 where nothing is ready. Throws if no pod answers. */
  async get(host: string, path: string): Promise<HttpAnswer> {
    const mine = `${LABEL.installation}=${this.#cluster.installation}`;
    const ingresses = await list<IngressObject>(this.#cluster, 'Ingress', undefined, mine);
    const ingress = ingresses.find(({ spec }) => spec.rules.some((rule) => rule.host === host));
    if (!ingress) return { status: 404, body: '' };
    const { name } = ingress.spec.rules[0]!.http.paths[0]!.backend.service;
    const slices = await this.#cluster.connection.get<{ items: EndpointSlice[] }>(
      `/apis/discovery.k8s.io/v1/namespaces/${ingress.metadata.namespace}/endpointslices`,
      { query: { labelSelector: `kubernetes.io/service-name=${name}` } },
    );
    const ready = slices.items.flatMap(({ endpoints = [], ports = [] }) =>
      endpoints
        .filter(({ conditions }) => conditions.ready !== false)
        .flatMap(({ addresses }) => ports.map(({ port }) => `${addresses[0]}:${port}`)),
    );
    if (ready.length === 0) return { status: 503, body: '' };
    const origin = `http://${ready[this.#turn++ % ready.length]}`;
    const answer = await request(`${origin}${path}`, { headers: { host, connection: 'close' } });
    return { status: answer.statusCode, body: await answer.body.text() };
  }
}

const KINDS: Kind[] = ['Deployment', 'Pod', 'Service', 'Secret', 'Ingress', 'ConfigMap', 'PersistentVolumeClaim'];

/** Returns the names of all remains of a service. */
export async function leftoversOf(cluster: Cluster, { serviceId }: WorkloadIdentity): Promise<string[]> {
  const found = await Promise.all(KINDS.map((kind) => list(cluster, kind, undefined, `${LABEL.service}=${serviceId}`)));
  return found.flatMap((objects, n) => objects.map(({ metadata }) => `${KINDS[n]} ${metadata.name}`));
}

/** Removes the namespaces of an installation without waiting for them. */
export async function removeNamespaces(cluster: Cluster): Promise<void> {
  const mine = `${LABEL.installation}=${cluster.installation}`;
  for (const { metadata } of await list(cluster, 'Namespace', undefined, mine))
    await cluster.connection.call('DELETE', `/api/v1/namespaces/${metadata.name}`).catch((error: unknown) => {
      // Another test may have removed it.
      if (!(error instanceof ApiError && error.status === 404)) throw error;
    });
}
