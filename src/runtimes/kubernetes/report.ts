import type { RuntimeReport } from '#runtimes/runtime.ts';
import type { Cluster } from './cluster.ts';
import { asRuntimeError } from './errors.ts';
import { API, CHOSEN, findExtensions, listApis, type Extensions } from './extensions.ts';
import type { ClusterObject, List } from './kinds.ts';
import { helmProblem } from './helm/program.ts';
import { KEDA_MISSING } from './keda.ts';
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
  const missing = await missingRights(cluster, (right) => !right.forCharts);
  if (missing.length > 0)
    return {
      ok: false,
      description: `Kubernetes ${gitVersion}: the account of the kubeconfig lacks rights: ${missing.join('; ')}. Apply what \`quarterdeck cluster rbac\` prints.`,
      limits: [],
    };
  const [nodes, storage, extensions] = await Promise.all([
    count(cluster, '/api/v1/nodes'),
    count(cluster, '/apis/storage.k8s.io/v1/storageclasses'),
    findExtensions(cluster),
  ]);
  const limits = [];
  if (Number(major) === 1 && Number.parseInt(minor, 10) < OLDEST)
    limits.push(`Versions before 1.${OLDEST} are not tried: upgrade the cluster.`);
  if (storage === 0)
    limits.push('No storage class: services with volumes wait for volumes that somebody makes by hand.');
  limits.push(...limitsOf(extensions));
  const description = `Kubernetes ${gitVersion}, ${nodes} ${nodes === 1 ? 'node' : 'nodes'}`;
  const charts = await chartProblem(cluster);
  return {
    ok: true,
    description,
    limits,
    missing: {
      ...(charts === null ? {} : { helm: charts }),
      ...(extensions.apis.has(API.keda) ? {} : { keda: KEDA_MISSING }),
    },
  };
}

/** Tells what the extensions of a cluster lack, and how to change that. */
function limitsOf(extensions: Extensions): string[] {
  const limits = [];
  const { gateways, gatewayCount, ingressClasses, hasIngress, hasMetrics } = extensions;
  if (gateways.length === 0 && gatewayCount > 0)
    limits.push(
      `${gatewayCount} ${gatewayCount === 1 ? 'Gateway is' : 'Gateways are'} there and none is chosen: label one with \`${CHOSEN.gateway}=true\` to attach the routes of services to it.`,
    );
  if (gateways.length === 0 && ingressClasses.length === 0)
    limits.push(
      'No ingress class and no chosen Gateway: nothing is reached from outside until an ingress controller is installed.',
    );
  if (gateways.length === 0 && ingressClasses.length > 0 && !hasIngress)
    limits.push(
      `None of the ingress classes ${ingressClasses.slice(0, 10).join(', ')} is the default: label one with \`${CHOSEN.ingressClass}=true\`.`,
    );
  if (!hasMetrics)
    limits.push(
      'Pods are not measured: services are not scaled by load and show no CPU and memory. Install metrics-server.',
    );
  return limits;
}

/** Returns the number of objects at a path: the cluster tells it with the first of them. */
async function count({ connection }: Cluster, path: string): Promise<number> {
  const { items, metadata } = await connection.get<List<ClusterObject>>(path, { query: { limit: 1 } });
  return items.length + (metadata.remainingItemCount ?? 0);
}

/** Returns why Helm charts cannot be applied, with the remedy; null if they can. */
async function chartProblem(cluster: Cluster): Promise<string | null> {
  const problem = await helmProblem(cluster.helm);
  if (problem !== null) return problem;
  const missing = await missingRights(cluster, (right) => right.forCharts === true);
  if (missing.length === 0) return null;
  return `The account of the kubeconfig lacks rights for Helm charts: ${missing.join('; ')}. Apply what \`quarterdeck cluster rbac\` prints, then deploy the cluster again.`;
}

/** Asks the cluster for each right, and names those that are missing. */
async function missingRights(cluster: Cluster, isMeant: (right: Right) => boolean): Promise<string[]> {
  const apis = await listApis(cluster);
  const needed = RIGHTS.filter(isMeant).filter(({ api }) => api === undefined || apis.has(api));
  const asked = needed.flatMap((right) => right.verbs.map((verb) => ({ right, verb })));
  const answers = await Promise.all(asked.map(({ right, verb }) => isAllowed(cluster, right, verb)));
  const refused = asked.filter((_, n) => !answers[n]);
  return needed.flatMap((right) => {
    const verbs = refused.filter((one) => one.right === right).map(({ verb }) => verb);
    const where = right.group === '' ? right.resource : `${right.resource}.${right.group}`;
    return verbs.length === 0 ? [] : [`${verbs.join(', ')} ${where} (${right.reason})`];
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
