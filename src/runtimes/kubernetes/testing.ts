import { createHash } from 'node:crypto';
import { request } from 'undici';
import { parse } from 'yaml';
import type { HttpAnswer } from '#runtimes/contract/memory-router.ts';
import type { WorkloadIdentity } from '#runtimes/runtime.ts';
import type { ClusterAccess } from '#runtimes/runtime.ts';
import type { AddressPolicy } from './access.ts';
import { list, type Cluster, type Kind } from './cluster.ts';
import { Connection } from './connection.ts';
import { ApiError } from './errors.ts';
import type { KubernetesRuntimeOptions } from './index.ts';
import type { ClusterObject, EndpointSlice } from './kinds.ts';
import { LABEL } from './labels.ts';

interface IngressObject extends ClusterObject {
  spec: { rules: { host: string; http: { paths: { backend: { service: { name: string } } }[] } }[] };
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
    const ready = slices.items.flatMap(({ endpoints, ports }) =>
      (endpoints ?? [])
        .filter(({ conditions }) => conditions.ready !== false)
        .flatMap(({ addresses }) => (ports ?? []).map(({ port }) => `${addresses[0]}:${port}`)),
    );
    if (ready.length === 0) return { status: 503, body: '' };
    const origin = `http://${ready[this.#turn++ % ready.length]}`;
    const answer = await request(`${origin}${path}`, { headers: { host, connection: 'close' } });
    return { status: answer.statusCode, body: await answer.body.text() };
  }
}

const KINDS: Kind[] = [
  'Job',
  'Deployment',
  'Pod',
  'Service',
  'Secret',
  'Ingress',
  'NetworkPolicy',
  'ConfigMap',
  'PersistentVolumeClaim',
  'HorizontalPodAutoscaler',
  'PodDisruptionBudget',
];

/** Returns the names of all remains of a service. */
export async function leftoversOf(cluster: Cluster, { serviceId }: WorkloadIdentity): Promise<string[]> {
  const found = await Promise.all(KINDS.map((kind) => list(cluster, kind, undefined, `${LABEL.service}=${serviceId}`)));
  return found.flatMap((objects, n) => objects.map(({ metadata }) => `${KINDS[n]} ${metadata.name}`));
}

interface Kubeconfig {
  clusters: { cluster: { server: string; 'certificate-authority-data': string } }[];
  users: { user: { token: string } }[];
}

/** Returns what a runtime of the tests' cluster is made of, and the cluster as its parts use it. */
export function openCluster({ kubeconfig }: { kubeconfig: string }, installation: string) {
  const { clusters, users } = parse(kubeconfig) as Kubeconfig;
  const { server, 'certificate-authority-data': authority } = clusters[0]!.cluster;
  const access: ClusterAccess = {
    server,
    serverName: null,
    authorities: String(Buffer.from(authority, 'base64')),
    insecure: false,
    certificate: null,
    token: users[0]!.user.token,
  };
  const policy: AddressPolicy = async (host) => [host];
  const recordKey = createHash('sha256').update(`records of ${installation}`).digest();
  const options: KubernetesRuntimeOptions = { installation, recordKey, access, policy };
  return { options, cluster: { connection: new Connection(options), installation, recordKey } satisfies Cluster };
}

/** Makes volumes on the node, which claims of 1 GiB are bound to. */
export async function makeVolumes(cluster: Cluster, count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    const name = `contract-${cluster.installation.slice(0, 8)}-${n}`;
    await cluster.connection.call('POST', '/api/v1/persistentvolumes', {
      body: {
        apiVersion: 'v1',
        kind: 'PersistentVolume',
        metadata: { name, labels: { [LABEL.installation]: cluster.installation } },
        spec: {
          capacity: { storage: '1Gi' },
          accessModes: ['ReadWriteOnce'],
          persistentVolumeReclaimPolicy: 'Retain',
          hostPath: { path: `/var/lib/${name}`, type: 'DirectoryOrCreate' },
        },
      },
    });
  }
}

/** Removes the namespaces and volumes of an installation without waiting for them. */
export async function removeMade(cluster: Cluster): Promise<void> {
  const mine = { labelSelector: `${LABEL.installation}=${cluster.installation}` };
  for (const kind of ['namespaces', 'persistentvolumes']) {
    const { items } = await cluster.connection.get<{ items: ClusterObject[] }>(`/api/v1/${kind}`, { query: mine });
    for (const { metadata } of items)
      await cluster.connection.call('DELETE', `/api/v1/${kind}/${metadata.name}`).catch((error: unknown) => {
        // Another test may have removed it.
        if (!(error instanceof ApiError && error.status === 404)) throw error;
      });
  }
}
