import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { request } from 'undici';
import type { Pack } from 'tar-stream';
import { hasCondition, KubernetesApi } from '#test/harness/kubernetes/api.ts';
import {
  configurationFiles,
  containerdSocket,
  dnsObjects,
  firstComponents,
  makeKubeconfig,
  otherComponents,
  type Layout,
} from '#test/harness/kubernetes/components.ts';
import { importArchive, importBaseImages, makeArchive, type ImageConfig } from '#test/harness/kubernetes/images.ts';
import { isThere, makeFolder, orderOf, startNamespaces } from '#test/harness/kubernetes/namespaces.ts';
import { findKubernetesPrograms } from '#test/harness/kubernetes/programs.ts';
import { waitFor } from '#test/harness/kubernetes/wait-for.ts';
import { selfSigned } from '#test/harness/self-signed.ts';

/** Kubernetes cluster for tests. It is plain data: test files run in processes of their own and get it by `inject`. */
export interface TestCluster {
  /** Text of a kubeconfig with an administrator's rights. */
  kubeconfig: string;
  /** Address at which node ports answer. */
  nodeAddress: string;
  /** Folder of a cluster that the tests started; null for an existing one. Addresses of pods and Services are reached in the first only. */
  directory: string | null;
}

interface StartedCluster {
  cluster: TestCluster;
  stop(): Promise<void>;
}

const HOW_TO =
  'These tests need a Kubernetes cluster. Set KUBECONFIG to the file of one, or run them as root after `.ci/kubernetes` and ' +
  '`apt-get install --no-install-recommends etcd-server containerd runc containernetworking-plugins busybox-static iptables iproute2`.';

/** Returns the cluster that `KUBECONFIG` names; without it starts one of one node, which `stop` ends. */
export async function findOrStartCluster(env: NodeJS.ProcessEnv): Promise<StartedCluster> {
  if (env['KUBECONFIG']) return findCluster(env['KUBECONFIG']);
  const programs = findKubernetesPrograms(env);
  if (!programs || process.getuid?.() !== 0) throw new Error(HOW_TO);
  const folder = await makeFolder();
  const { addresses, end } = await startNamespaces(folder);
  const layout = { folder, programs, addresses, group: `/${path.basename(folder)}` };
  try {
    const kubeconfig = await startComponents(layout);
    return { cluster: { kubeconfig, nodeAddress: addresses.node, directory: folder }, stop: end };
  } catch (error) {
    const reason = await lastLinesOfEnded(folder);
    await end();
    throw new Error(`The cluster cannot be started. ${reason}`, { cause: error });
  }
}

async function findCluster(file: string): Promise<StartedCluster> {
  const kubeconfig = await readFile(file, 'utf8');
  const api = new KubernetesApi(kubeconfig);
  const [node] = await api.list('/api/v1/nodes');
  await api.close();
  const nodeAddress = node?.status?.addresses?.find(({ type }) => type === 'InternalIP')?.address;
  if (!nodeAddress) throw new Error(`The cluster of ${file} has no node with an address.`);
  return { cluster: { kubeconfig, nodeAddress, directory: null }, stop: async () => {} };
}

/** Starts all components and waits until pods can be created; returns the kubeconfig. */
async function startComponents(layout: Layout): Promise<string> {
  const { folder, programs } = layout;
  const token = randomBytes(16).toString('hex');
  await writeFiles(folder, { ...configurationFiles(layout), ...makeCredentials(token) });
  for (const component of firstComponents(layout)) await orderOf(folder, { start: component });
  await waitFor('containerd', () => isThere(containerdSocket(folder)));
  const images = importBaseImages(folder, programs.ctr);
  const certificate = path.join(folder, 'certificates/apiserver.crt');
  // Its key is written behind it: a certificate alone may be there in part.
  await waitFor('the certificate of the API server', () => isThere(certificate.replace(/crt$/, 'key')));
  const kubeconfig = makeKubeconfig(layout, await readFile(certificate, 'utf8'), token);
  await writeFiles(folder, { kubeconfig });
  const api = new KubernetesApi(kubeconfig);
  try {
    await waitForApiServer(folder, api);
    for (const component of otherComponents(layout)) await orderOf(folder, { start: component });
    for (const [collection, object] of dnsObjects(layout)) await api.create(collection, object);
    await waitFor('the cluster', () => isReady(layout, api));
    await images;
  } finally {
    await api.close();
  }
  return kubeconfig;
}

async function writeFiles(folder: string, files: Record<string, string>): Promise<void> {
  for (const [name, content] of Object.entries(files)) {
    const file = path.join(folder, name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, content, { mode: 0o600 });
  }
}

/** Returns the files with the administrator's token, the keys of service accounts, and what the API server shows to kubelet. */
function makeCredentials(token: string): Record<string, string> {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const client = selfSigned();
  return {
    'tokens.csv': `${token},admin,admin,"system:masters"\n`,
    'accounts.key': privateKey.export({ format: 'pem', type: 'pkcs1' }) as string,
    'accounts.pub': publicKey.export({ format: 'pem', type: 'spki' }) as string,
    'kubelet-client.crt': client.cert,
    'kubelet-client.key': client.key,
  };
}

const waitForApiServer = (folder: string, api: KubernetesApi): Promise<void> =>
  waitFor('the API server', async () => {
    await checkComponents(folder);
    return isSuccess(api.call('GET', '/readyz'));
  });

/** Returns whether the node takes pods, names are resolved, and pods of the namespace `default` get their account. */
async function isReady({ folder, addresses }: Layout, api: KubernetesApi): Promise<boolean> {
  await checkComponents(folder);
  const [node] = await api.list('/api/v1/nodes');
  if (!node || !hasCondition(node, 'Ready')) return false;
  const resolver = request(`http://${addresses.node}:8181/ready`).then(async ({ statusCode, body }) => {
    await body.dump();
    return { status: statusCode };
  });
  return (
    (await isSuccess(resolver)) &&
    (await isSuccess(api.call('GET', '/api/v1/namespaces/default/serviceaccounts/default')))
  );
}

/** Connections are refused until a component listens. */
const isSuccess = (call: Promise<{ status: number }>): Promise<boolean> =>
  call.then(
    ({ status }) => status < 300,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED') return false;
      throw error;
    },
  );

async function checkComponents(folder: string): Promise<void> {
  const ended = Object.entries(await orderOf(folder)).filter(([, exit]) => exit !== null);
  if (ended.length > 0) throw new Error(`Ended by themselves: ${ended.map((pair) => pair.join(': ')).join(', ')}.`);
}

/** Returns the ends of the logs of those components that have ended. */
async function lastLinesOfEnded(folder: string): Promise<string> {
  const ended = Object.entries(await orderOf(folder)).filter(([, exit]) => exit !== null);
  const logs = ended.map(async ([name, exit]) => {
    const lines = (await readFile(path.join(folder, `${name}.log`), 'utf8')).split('\n');
    return `${name} ended (${exit}):\n${lines.slice(-15).join('\n')}`;
  });
  return (await Promise.all(logs)).join('\n');
}

/** Ends the API server at once, as a crash does. Only for a cluster that the tests started. */
export async function stopApiServer(cluster: TestCluster): Promise<void> {
  await orderOf(ownFolder(cluster), { stop: 'kube-apiserver' });
}

/** Starts the API server that `stopApiServer` ended, and waits until it answers. */
export async function startApiServer(cluster: TestCluster): Promise<void> {
  const folder = ownFolder(cluster);
  await orderOf(folder, { start: 'kube-apiserver' });
  const api = new KubernetesApi(cluster.kubeconfig);
  await waitForApiServer(folder, api).finally(() => api.close());
}

export async function restartApiServer(cluster: TestCluster): Promise<void> {
  await stopApiServer(cluster);
  await startApiServer(cluster);
}

/** Adds an image of one layer to the cluster, made by the functions of `docker-images.ts`. Pods name it as `docker` does. */
export async function importImage(
  cluster: TestCluster,
  name: string,
  fill: (archive: Pack) => Promise<void>,
  config: ImageConfig = { Cmd: ['sh'] },
): Promise<void> {
  const { ctr } = findKubernetesPrograms(process.env)!;
  await importArchive(ownFolder(cluster), ctr, await makeArchive(name, fill, config));
}

function ownFolder(cluster: TestCluster): string {
  if (cluster.directory === null) throw new Error('This cluster is not ours to change.');
  return cluster.directory;
}
