import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TestCluster } from '#test/harness/kubernetes-cluster.ts';
import { KubernetesApi } from '#test/harness/kubernetes/api.ts';
import { waitFor } from '#test/harness/kubernetes/wait-for.ts';
import { selfSigned } from '#test/harness/self-signed.ts';

const GROUP = 'metrics.k8s.io';
const ROOT = `/apis/${GROUP}/v1beta1`;
const API_SERVICES = '/apis/apiregistration.k8s.io/v1/apiservices';
const SERVICES = '/api/v1/namespaces/kube-system/services';
const SLICES = '/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices';

interface Pod {
  metadata: { name: string; namespace: string };
  spec: { nodeName?: string; containers: { name: string }[] };
}

interface Measured {
  cpu?: { usageNanoCores?: number };
  memory?: { workingSetBytes?: number };
}

interface PodStats {
  podRef: { name: string; namespace: string };
  containers: ({ name: string } & Measured)[];
}

export interface MetricsApi {
  /** Uses this load for all pods instead of what kubelet measures; null measures again. */
  pretend(usage: { cpu: string; memory: string } | null): void;
  stop(): Promise<void>;
}

/**
 * Serves the API of metrics-server in a cluster that the tests started: an aggregated API behind a Service, with what kubelet measures at
 * the moment of the call.
 */
export async function startMetricsApi(cluster: TestCluster): Promise<MetricsApi> {
  const api = new KubernetesApi(cluster.kubeconfig);
  let pretended: { cpu: string; memory: string } | null = null;
  const server = createServer({ ...selfSigned() }, (request, response) => {
    answer(api, request, pretended).then(
      (body) => response.setHeader('content-type', 'application/json').end(JSON.stringify(body)),
      (error: Error) => response.writeHead(500).end(error.message),
    );
  });
  // The node's way out: the first address of its network is this machine.
  server.listen(0, cluster.nodeAddress.replace(/\d+$/, '1'));
  await once(server, 'listening');
  const { address, port } = server.address() as AddressInfo;
  const metadata = { name: 'metrics', labels: { 'kubernetes.io/service-name': 'metrics' } };
  await api.create(SERVICES, { metadata, spec: { ports: [{ name: 'https', port: 443 }] } });
  const ports = [{ name: 'https', port, protocol: 'TCP' }];
  const endpoints = [{ addresses: [address], conditions: { ready: true } }];
  await api.create(SLICES, { metadata, addressType: 'IPv4', ports, endpoints });
  await api.create(API_SERVICES, {
    metadata: { name: `v1beta1.${GROUP}` },
    spec: {
      group: GROUP,
      version: 'v1beta1',
      groupPriorityMinimum: 100,
      versionPriority: 100,
      insecureSkipTLSVerify: true,
      service: { name: 'metrics', namespace: 'kube-system' },
    },
  });
  await waitFor('the metrics API', async () => (await api.call('GET', ROOT)).status === 200);
  return {
    pretend: (usage) => void (pretended = usage),
    stop: async () => {
      await api.delete(`${API_SERVICES}/v1beta1.${GROUP}`);
      await api.delete(`${SLICES}/metrics`);
      await api.delete(`${SERVICES}/metrics`);
      await api.close();
      server.closeAllConnections();
      server.close();
    },
  };
}

async function answer(api: KubernetesApi, { url }: IncomingMessage, pretended: object | null): Promise<object> {
  const { pathname, search } = new URL(url!, 'https://metrics');
  if (pathname === ROOT) return RESOURCES;
  if (pathname === `${ROOT}/nodes`) return nodesOf(api, pretended);
  const [, namespace] = /\/namespaces\/([^/]+)\/pods$/.exec(pathname) ?? [];
  if (namespace === undefined) return { kind: 'Status', status: 'Failure', code: 404 };
  const pods = await api.list<Pod>(`/api/v1/namespaces/${namespace}/pods${search}`);
  const measured = pretended ? [] : await measureNode(api, pods);
  const timestamp = new Date().toISOString();
  const items = pods
    .filter(({ spec }) => spec.nodeName !== undefined)
    .map(({ metadata, spec }) => ({
      metadata,
      timestamp,
      window: '1s',
      containers: pretended
        ? spec.containers.map(({ name }) => ({ name, usage: pretended }))
        : usageOf(measured.find(({ podRef }) => podRef.name === metadata.name && podRef.namespace === namespace)),
    }));
  return { kind: 'PodMetricsList', apiVersion: `${GROUP}/v1beta1`, metadata: {}, items };
}

/** Returns the use of each node: that which the test names, or what its kubelet measures. */
async function nodesOf(api: KubernetesApi, pretended: object | null): Promise<object> {
  const nodes = await api.list<{ metadata: { name: string } }>('/api/v1/nodes');
  const timestamp = new Date().toISOString();
  const items = nodes.map(async ({ metadata: { name } }) => {
    const usage = pretended ?? toUsage((await api.get<{ node: Measured }>(summaryOf(name))).node);
    return { metadata: { name }, timestamp, window: '1s', usage };
  });
  return { kind: 'NodeMetricsList', apiVersion: `${GROUP}/v1beta1`, metadata: {}, items: await Promise.all(items) };
}

const summaryOf = (node: string): string => `/api/v1/nodes/${node}/proxy/stats/summary?only_cpu_and_memory=true`;

async function measureNode(api: KubernetesApi, pods: Pod[]): Promise<PodStats[]> {
  const node = pods.find(({ spec }) => spec.nodeName)?.spec.nodeName;
  if (node === undefined) return [];
  return (await api.get<{ pods: PodStats[] }>(summaryOf(node))).pods;
}

const usageOf = (stats: PodStats | undefined) =>
  (stats?.containers ?? []).map(({ name, ...measured }) => ({ name, usage: toUsage(measured) }));

const toUsage = ({ cpu, memory }: Measured) => ({
  cpu: `${cpu?.usageNanoCores ?? 0}n`,
  memory: `${Math.ceil((memory?.workingSetBytes ?? 0) / 1024)}Ki`,
});

const RESOURCES = {
  kind: 'APIResourceList',
  apiVersion: 'v1',
  groupVersion: `${GROUP}/v1beta1`,
  resources: [
    { name: 'pods', singularName: '', namespaced: true, kind: 'PodMetrics', verbs: ['get', 'list'] },
    { name: 'nodes', singularName: '', namespaced: false, kind: 'NodeMetrics', verbs: ['get', 'list'] },
  ],
};
