import type { RuntimeFeature, RuntimeReport } from '#runtimes/runtime.ts';
import type { Cluster } from './cluster.ts';
import { asRuntimeError } from './errors.ts';
import type { ClusterObject, List } from './kinds.ts';
import { RIGHTS, type Right } from './rights.ts';

/** Oldest version that is known to work: `preStop.sleep` and sockets for programs in pods are there since then. */
const OLDEST = 30;

interface Review {
  status: { allowed: boolean; reason?: string };
}

/** Reports version, size, missing rights and limits of a cluster (`Runtime.check`). Never throws. */
export async function reportOf(cluster: Cluster): Promise<RuntimeReport> {
  try {
    return await look(cluster);
  } catch (error) {
    return { ok: false, description: asRuntimeError(error).message, limits: [] };
  }
}

async function look(cluster: Cluster): Promise<RuntimeReport> {
  const { gitVersion, major, minor } =
    await cluster.connection.get<Record<'gitVersion' | 'major' | 'minor', string>>('/version');
  const lacking = await missingRights(cluster);
  const needed = lacking.filter(({ feature }) => feature === undefined);
  if (needed.length > 0)
    return {
      ok: false,
      description: `Kubernetes ${gitVersion}: ${lackOf(needed)}`,
      limits: [],
    };
  const [nodes, storage, ingress] = await Promise.all([
    count(cluster, '/api/v1/nodes'),
    count(cluster, '/apis/storage.k8s.io/v1/storageclasses'),
    count(cluster, '/apis/networking.k8s.io/v1/ingressclasses'),
  ]);
  const limits = [];
  if (Number(major) === 1 && Number.parseInt(minor, 10) < OLDEST)
    limits.push(`Versions before 1.${OLDEST} are not tried: upgrade the cluster.`);
  if (storage === 0)
    limits.push('No storage class: services with volumes wait for volumes that somebody makes by hand.');
  if (ingress === 0)
    limits.push('No ingress class: nothing is reached from outside until an ingress controller is installed.');
  return {
    ok: true,
    description: `Kubernetes ${gitVersion}, ${nodes} ${nodes === 1 ? 'node' : 'nodes'}`,
    limits,
    ...missingFeatures(lacking),
  };
}

/** Right that the account lacks, for people. */
interface Lack {
  text: string;
  feature: RuntimeFeature | undefined;
}

const lackOf = (lacking: Lack[]): string =>
  `the account of the kubeconfig lacks rights: ${lacking.map(({ text }) => text).join('; ')}. Apply what \`quarterdeck cluster rbac\` prints.`;

/** Returns the features for which the account lacks rights, each with the remedy. */
function missingFeatures(lacking: Lack[]): Pick<RuntimeReport, 'missing'> {
  const features = [...new Set(lacking.flatMap(({ feature }) => feature ?? []))];
  if (features.length === 0) return {};
  const remedyOf = (one: RuntimeFeature) => {
    const sentence = lackOf(lacking.filter(({ feature }) => feature === one));
    return `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}`;
  };
  return { missing: Object.fromEntries(features.map((feature) => [feature, remedyOf(feature)])) };
}

/** Returns the number of objects at a path: the cluster tells it with the first of them. */
async function count({ connection }: Cluster, path: string): Promise<number> {
  const { items, metadata } = await connection.get<List<ClusterObject>>(path, { query: { limit: 1 } });
  return items.length + (metadata.remainingItemCount ?? 0);
}

/** Asks the cluster for each right, and names those that are missing. */
async function missingRights(cluster: Cluster): Promise<Lack[]> {
  const asked = RIGHTS.flatMap((right) => right.verbs.map((verb) => ({ right, verb })));
  const answers = await Promise.all(asked.map(({ right, verb }) => isAllowed(cluster, right, verb)));
  const refused = asked.filter((_, n) => !answers[n]);
  return RIGHTS.flatMap((right) => {
    const verbs = refused.filter((one) => one.right === right).map(({ verb }) => verb);
    const where = right.group === '' ? right.resource : `${right.resource}.${right.group}`;
    if (verbs.length === 0) return [];
    return [{ text: `${verbs.join(', ')} ${where} (${right.reason})`, feature: right.feature }];
  });
}

async function isAllowed({ connection }: Cluster, { group, resource: whole }: Right, verb: string): Promise<boolean> {
  const [resource, subresource] = whole.split('/');
  const resourceAttributes = { group, resource, verb, ...(subresource === undefined ? {} : { subresource }) };
  const body = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: { resourceAttributes },
  };
  const { status } = await connection.call<Review>('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
    body,
  });
  return status.allowed;
}
