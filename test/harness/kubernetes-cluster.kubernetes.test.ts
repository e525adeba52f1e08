import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { request } from 'undici';
import { addBusybox, NODE_IMAGE } from '#test/harness/docker-images.ts';
import { KubernetesApi, hasCondition, type KubernetesObject } from '#test/harness/kubernetes/api.ts';
import { importImage, restartApiServer, startApiServer, stopApiServer } from '#test/harness/kubernetes-cluster.ts';

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

/** Each request has a connection of its own, so that each pod gets some. */
const answerOf = async (url: string): Promise<string> => (await request(url, { reset: true })).body.text();

interface Phase {
  status: { phase: string };
}

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
    await vi.waitFor(async () => expect(await readyPods()).toHaveLength(2), { timeout: 60_000 });
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
    // The name and its way to the pods are there a moment after the pods.
    const ask = async () => {
      const answer = await execInPod(asking(`http://app.${NAMESPACE}.svc.cluster.local`));
      return { ...answer, isPod: (await readyPods()).includes(answer.stdout.trim()) };
    };
    await expect.poll(ask).toMatchObject({ status: 'Success', stderr: '', isPod: true });
    expect((await execInPod(asking('http://app'))).status).toBe('Success');
  });

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

  describe.runIf(cluster.directory !== null)('that they started', () => {
    const urlOfService = async (): Promise<string> => {
      const { spec } = await api.get<{ spec: { clusterIP: string } }>(`${IN_NAMESPACE}/services/app`);
      return `http://${spec.clusterIP}`;
    };

    test('a Service answers the tests at its address, from each of its pods', async () => {
      const url = await urlOfService();
      const answering = new Set<string>();
      await expect.poll(async () => answering.add(await answerOf(url))).toHaveProperty('size', 2);
      expect([...answering].toSorted()).toEqual((await readyPods()).toSorted());
    });

    test('Services answer while the API server is down', async () => {
      const url = await urlOfService();
      await stopApiServer(cluster);
      await expect(api.call('GET', '/readyz')).rejects.toThrow('ECONNREFUSED');
      await answerOf(url);
      await startApiServer(cluster);
    });

    test('pods live through a restart of the API server', async () => {
      const before = await readyPods();
      await restartApiServer(cluster);
      expect(await readyPods()).toEqual(before);
      expect((await execInPod('')).status).toBe('Success');
    });

    test('a pod runs an image that was imported', async () => {
      const image = `quarterdeck-test-imported-${process.pid}:1`;
      await importImage(cluster, image, async (archive) => {
        await addBusybox(archive);
        archive.entry({ name: 'greeting' }, 'hello from the image\n');
      });
      const containers = [{ name: 'cat', image, command: ['cat', '/greeting'] }];
      await api.create(`${IN_NAMESPACE}/pods`, {
        metadata: { name: 'cat' },
        spec: { restartPolicy: 'Never', containers },
      });
      await expect.poll(async () => (await api.get<Phase>(`${IN_NAMESPACE}/pods/cat`)).status.phase).toBe('Succeeded');
      expect(await api.text(`${IN_NAMESPACE}/pods/cat/log`)).toBe('hello from the image\n');
    });
  });
});
