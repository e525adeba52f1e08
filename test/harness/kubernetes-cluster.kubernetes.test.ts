import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { request } from 'undici';
import { NODE_IMAGE } from '#test/harness/docker-images.ts';
import { KubernetesApi, hasCondition, type KubernetesObject } from '#test/harness/kubernetes/api.ts';
import { restartApiServer } from '#test/harness/kubernetes-cluster.ts';

const cluster = inject('kubernetes');
const api = new KubernetesApi(cluster.kubeconfig);

const NAMESPACE = `cluster-${process.pid}`;
const IN_NAMESPACE = `/api/v1/namespaces/${NAMESPACE}`;
const DEPLOYMENTS = `/apis/apps/v1/namespaces/${NAMESPACE}/deployments`;
const PORT = 8080;

const SERVER = `
console.log('listens');
require('node:http').createServer((request, response) => response.end(process.env.HOSTNAME)).listen(${PORT});
process.on('SIGTERM', () => process.exit());`;

/** Answers of the pods are their own names. */
const asking = (url: string) => `fetch(${JSON.stringify(url)}).then((answer) => answer.text()).then(console.log)`;

const metadata = { name: 'app', labels: { app: 'app' } };
const selector = { app: 'app' };
const container = { name: 'app', image: NODE_IMAGE, command: ['node', '-e', SERVER] };
const readinessProbe = { httpGet: { port: PORT }, periodSeconds: 1 };
const deployment = {
  metadata,
  spec: {
    replicas: 2,
    selector: { matchLabels: selector },
    template: { metadata, spec: { containers: [{ ...container, readinessProbe }] } },
  },
};

const readyPods = async (): Promise<string[]> =>
  (await api.list(`${IN_NAMESPACE}/pods?labelSelector=app%3Dapp`))
    .filter((pod) => hasCondition(pod, 'Ready'))
    .map((pod) => pod.metadata.name);

const execInPod = async (script: string) => {
  const [pod] = await readyPods();
  return api.exec(NAMESPACE, pod!, ['node', '-e', script]);
};

describe('a cluster of the tests', { timeout: 60_000 }, () => {
  beforeAll(async () => {
    await api.create('/api/v1/namespaces', { metadata: { name: NAMESPACE } });
    await api.create(DEPLOYMENTS, deployment);
    await api.create(`${IN_NAMESPACE}/services`, {
      metadata,
      spec: { selector, ports: [{ port: 80, targetPort: PORT }] },
    });
    await expect.poll(readyPods, { timeout: 60_000 }).toHaveLength(2);
  });
  afterAll(async () => {
    await api.delete(`/api/v1/namespaces/${NAMESPACE}`);
    await api.close();
  });

  test('a Deployment gets its pods ready', async () => {
    await expect
      .poll(async () => hasCondition(await api.get<KubernetesObject>(`${DEPLOYMENTS}/app`), 'Available'))
      .toBe(true);
  });

  test('the name of a Service leads a pod to the pods behind it', async () => {
    const answer = await execInPod(asking(`http://app.${NAMESPACE}.svc.cluster.local`));
    expect(answer).toMatchObject({ status: 'Success', stderr: '' });
    expect(await readyPods()).toContain(answer.stdout.trim());
    expect((await execInPod(asking('http://app'))).status).toBe('Success');
  });

  test.runIf(cluster.directory !== null)(
    'the address of a Service answers the tests, from each of its pods',
    async () => {
      const { spec } = await api.get<{ spec: { clusterIP: string } }>(`${IN_NAMESPACE}/services/app`);
      const answering = new Set<string>();
      await expect
        .poll(async () => {
          const { body } = await request(`http://${spec.clusterIP}`, { reset: true });
          return answering.add(await body.text());
        })
        .toHaveProperty('size', 2);
      expect([...answering].toSorted()).toEqual((await readyPods()).toSorted());
    },
  );

  test('exec answers output and status of a command', async () => {
    expect(await execInPod('console.log("out"); console.error("err"); process.exitCode = 3')).toEqual({
      stdout: 'out\n',
      stderr: 'err\n',
      status: 'Failure',
    });
  });

  test('the log of a pod is read through the API server', async () => {
    const [pod] = await readyPods();
    expect(await api.text(`${IN_NAMESPACE}/pods/${pod}/log`)).toBe('listens\n');
  });

  test.runIf(cluster.directory !== null)('pods live through a restart of the API server', async () => {
    const before = await readyPods();
    await restartApiServer(cluster);
    expect(await readyPods()).toEqual(before);
    expect((await execInPod('')).status).toBe('Success');
  });
});
