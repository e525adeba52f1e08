import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { connect } from 'node:tls';
import { request } from 'undici';
import type { TestCluster } from '#test/harness/kubernetes-cluster.ts';
import { BUSYBOX_IMAGE } from '#test/harness/docker-images.ts';
import { hasCondition, KubernetesApi, type KubernetesObject } from '#test/harness/kubernetes/api.ts';
import { waitFor } from '#test/harness/kubernetes/wait-for.ts';

/** Folder into which `.ci/traefik` builds. */
const BUILT = 'quarterdeck-ci/traefik-3.6.12';

/** Namespace and name of Traefik and of its Gateway. */
const NAME = 'traefik';
/** Ports of the chart of Traefik. Listeners of a Gateway have the ports of entry points. */
const PORTS = { web: 8000, websecure: 8443, metrics: 9100 };

const LABELS = { 'app.kubernetes.io/name': NAME };
const PODS = `/api/v1/namespaces/${NAME}/pods`;
const DEPLOYMENTS = `/apis/apps/v1/namespaces/${NAME}/deployments`;
const GATEWAY_API = 'gateway.networking.k8s.io';

interface GatewayPod extends KubernetesObject {
  metadata: { name: string; uid: string; deletionTimestamp?: string };
  status?: KubernetesObject['status'] & { podIP?: string };
}

/** Returns the program Traefik of this machine; null if it has none. */
export function findTraefik(): string | null {
  const cache = process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache');
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), join(cache, BUILT)];
  return folders.map((folder) => join(folder, 'traefik')).find((file) => existsSync(file)) ?? null;
}

/** Real Traefik in a cluster of the tests, with a Gateway and an ingress class, as its chart installs it. */
export class Traefik {
  readonly #api: KubernetesApi;

  private constructor(api: KubernetesApi) {
    this.#api = api;
  }

  /** Starts it; the definitions of the Gateway API must be there. */
  static async start(cluster: TestCluster): Promise<Traefik> {
    const program = findTraefik();
    if (program === null) throw new Error('There is no program traefik: `.ci/traefik` builds it.');
    const traefik = new Traefik(new KubernetesApi(cluster.kubeconfig));
    for (const [collection, object] of objectsOf(program)) await traefik.#api.create(collection, object);
    await traefik.scale(1);
    await waitFor('the Gateway of Traefik', async () => {
      const path = `/apis/${GATEWAY_API}/v1/namespaces/${NAME}/gateways/${NAME}`;
      return hasCondition(await traefik.#api.get(path), 'Programmed');
    });
    return traefik;
  }

  /** Runs a number of pods, and waits until all of them are ready and no others are there. */
  async scale(replicas: number): Promise<void> {
    await this.#api.call('PATCH', `${DEPLOYMENTS}/${NAME}`, { spec: { replicas } });
    await waitFor(`${replicas} pods of Traefik`, async () => {
      const pods = await this.pods();
      return pods.length === replicas && pods.every((pod) => hasCondition(pod, 'Ready'));
    });
  }

  pods = (): Promise<GatewayPod[]> => this.#api.list<GatewayPod>(PODS);

  /** Replaces all pods by new ones. */
  async replace(): Promise<void> {
    const before = await this.pods();
    for (const { metadata } of before) await this.#api.delete(`${PODS}/${metadata.name}`);
    await waitFor('other pods of Traefik', async () => {
      const names = (await this.pods()).map(({ metadata }) => metadata.name);
      return names.length > 0 && before.every(({ metadata }) => !names.includes(metadata.name));
    });
    await this.scale(before.length);
  }

  /** Returns the origin at which a pod takes requests. */
  origin = async (pod = 0): Promise<string> => `http://${(await this.pods())[pod]!.status!.podIP}:${PORTS.web}`;

  /** Sends a GET for a host to a pod. */
  async get(host: string, path: string, pod = 0): Promise<{ status: number; body: string }> {
    const headers = { host, connection: 'close' };
    const answer = await request(`${await this.origin(pod)}${path}`, { headers });
    return { status: answer.statusCode, body: await answer.body.text() };
  }

  /** Returns the fingerprint of the certificate that a host is shown. */
  async certificateOf(host: string): Promise<string> {
    const [pod] = await this.pods();
    const socket = connect({
      host: pod!.status!.podIP!,
      port: PORTS.websecure,
      servername: host,
      rejectUnauthorized: false,
    });
    await once(socket, 'secureConnect', { signal: AbortSignal.timeout(10_000) });
    const { fingerprint256 } = socket.getPeerCertificate();
    socket.destroy();
    return fingerprint256;
  }

  async stop(): Promise<void> {
    for (const path of [
      `/api/v1/namespaces/${NAME}`,
      `/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/${NAME}`,
      `/apis/rbac.authorization.k8s.io/v1/clusterroles/${NAME}`,
      `/apis/networking.k8s.io/v1/ingressclasses/${NAME}`,
    ])
      await this.#api.delete(path);
    await waitFor(
      'the end of Traefik',
      async () => (await this.#api.call('GET', `/api/v1/namespaces/${NAME}`)).status === 404,
    );
    await this.#api.close();
  }
}

function objectsOf(program: string): [collection: string, object: object][] {
  const metadata = { name: NAME };
  const rbac = '/apis/rbac.authorization.k8s.io/v1';
  return [
    ['/api/v1/namespaces', { metadata }],
    [`/api/v1/namespaces/${NAME}/serviceaccounts`, { metadata }],
    [`${rbac}/clusterroles`, { metadata, rules: RULES }],
    [
      `${rbac}/clusterrolebindings`,
      {
        metadata,
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: NAME },
        subjects: [{ kind: 'ServiceAccount', name: NAME, namespace: NAME }],
      },
    ],
    ['/apis/networking.k8s.io/v1/ingressclasses', { metadata, spec: { controller: 'traefik.io/ingress-controller' } }],
    [
      `/apis/${GATEWAY_API}/v1/gatewayclasses`,
      {
        apiVersion: `${GATEWAY_API}/v1`,
        kind: 'GatewayClass',
        metadata,
        spec: { controllerName: 'traefik.io/gateway-controller' },
      },
    ],
    [
      `/apis/${GATEWAY_API}/v1/namespaces/${NAME}/gateways`,
      {
        apiVersion: `${GATEWAY_API}/v1`,
        kind: 'Gateway',
        metadata,
        spec: { gatewayClassName: NAME, listeners: [LISTENER] },
      },
    ],
    [DEPLOYMENTS, deploymentOf(program)],
  ];
}

const LISTENER = {
  name: 'web',
  port: PORTS.web,
  protocol: 'HTTP',
  allowedRoutes: { namespaces: { from: 'All' } },
};

const ruleOf = (group: string, resources: string[], verbs = ['get', 'list', 'watch']) => ({
  apiGroups: [group],
  resources,
  verbs,
});

/** Rights that Traefik's manual lists for its providers of Gateways and Ingresses. */
const RULES = [
  ruleOf('', ['namespaces', 'nodes', 'services', 'secrets', 'configmaps', 'pods']),
  ruleOf('discovery.k8s.io', ['endpointslices']),
  ruleOf('networking.k8s.io', ['ingresses', 'ingressclasses']),
  ruleOf('networking.k8s.io', ['ingresses/status'], ['update']),
  ruleOf(GATEWAY_API, [
    'gatewayclasses',
    'gateways',
    'httproutes',
    'grpcroutes',
    'referencegrants',
    'backendtlspolicies',
  ]),
  ruleOf(
    GATEWAY_API,
    ['gatewayclasses/status', 'gateways/status', 'httproutes/status', 'grpcroutes/status', 'backendtlspolicies/status'],
    ['update'],
  ),
];

const ARGUMENTS = [
  ...Object.entries(PORTS).map(([name, port]) => `--entryPoints.${name}.address=:${port}/tcp`),
  '--entryPoints.websecure.http.tls=true',
  '--providers.kubernetesIngress=true',
  '--providers.kubernetesGateway=true',
  '--metrics.prometheus=true',
  '--metrics.prometheus.entryPoint=metrics',
  '--ping=true',
  '--ping.entryPoint=metrics',
  '--global.checkNewVersion=false',
  '--global.sendAnonymousUsage=false',
];

/** Deployment whose pods run the machine's program. */
function deploymentOf(program: string): object {
  const container = {
    name: NAME,
    image: BUSYBOX_IMAGE,
    imagePullPolicy: 'Never',
    command: ['/program/traefik', ...ARGUMENTS],
    ports: Object.entries(PORTS).map(([name, containerPort]) => ({ name, containerPort })),
    readinessProbe: { httpGet: { path: '/ping', port: PORTS.metrics }, periodSeconds: 1 },
    volumeMounts: [{ name: 'program', mountPath: '/program', readOnly: true }],
  };
  return {
    metadata: { name: NAME, labels: LABELS },
    spec: {
      replicas: 0,
      selector: { matchLabels: LABELS },
      template: {
        metadata: { labels: LABELS },
        spec: {
          serviceAccountName: NAME,
          terminationGracePeriodSeconds: 1,
          containers: [container],
          volumes: [{ name: 'program', hostPath: { path: dirname(program), type: 'Directory' } }],
        },
      },
    },
  };
}
