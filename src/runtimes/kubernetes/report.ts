import type { RuntimeFeature, RuntimeReport } from '#runtimes/runtime.ts';
import type { Cluster } from './cluster.ts';
import { asRuntimeError } from './errors.ts';
import { API, CHOSEN, findExtensions, listApis, type Extensions } from './extensions.ts';
import type { ClusterObject, List } from './kinds.ts';
import { helmProblem } from './helm/program.ts';
import { KEDA_MISSING } from './keda.ts';
import { uncountedReasons } from './requests/reasons.ts';
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

/** Milliseconds for which quick checks repeat rights and sizes: a look at them takes a request for each right. */
const REPEATED_MS = 2 * 60_000;

/** Reports of a cluster, of which quick ones are repeated. */
export class Reporter {
  readonly #cluster: Cluster;
  #last: { report: RuntimeReport; at: number } | null = null;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  /** Looks anew the next time: the credentials were replaced. */
  forget(): void {
    this.#last = null;
  }

  /** Looks at the cluster. Never throws. */
  async check(isQuick: boolean): Promise<RuntimeReport> {
    const last = isQuick && this.#last && performance.now() - this.#last.at < REPEATED_MS ? this.#last.report : null;
    if (last) return this.#repeat(last);
    const report = await reportOf(this.#cluster);
    this.#last = report.ok ? { report, at: performance.now() } : null;
    return report;
  }

  /** Repeats a report if the cluster answers. */
  async #repeat(report: RuntimeReport): Promise<RuntimeReport> {
    try {
      await this.#cluster.connection.get('/version');
      return report;
    } catch (error) {
      return { ok: false, description: asRuntimeError(error).message, limits: [] };
    }
  }
}

async function look(cluster: Cluster): Promise<RuntimeReport> {
  const { gitVersion, major, minor } =
    await cluster.connection.get<Record<'gitVersion' | 'major' | 'minor', string>>('/version');
  const refused = await listRefused(cluster);
  const lacking = toLacks(
    refused.filter(({ verb, right }) => !right.limit && (verb !== 'watch' || right.feature !== undefined)),
  );
  const needed = lacking.filter(({ feature }) => feature === undefined);
  if (needed.length > 0)
    return {
      ok: false,
      description: `Kubernetes ${gitVersion}: ${lackOf(needed)}`,
      limits: [],
    };
  const [nodes, storage, extensions] = await Promise.all([
    count(cluster, '/api/v1/nodes'),
    count(cluster, '/apis/storage.k8s.io/v1/storageclasses'),
    findExtensions(cluster),
  ]);
  const limits = [];
  // Accounts of earlier releases lack it, and can do without.
  const unwatched = toLacks(
    refused.filter(({ verb, right }) => verb === 'watch' && !right.limit && right.feature === undefined),
  );
  if (unwatched.length > 0)
    limits.push(
      `The account of the kubeconfig lacks rights: ${unwatched.map(({ text }) => text).join('; ')}. What happens in the cluster is seen up to 30 s late; apply what \`quarterdeck cluster rbac\` prints.`,
    );
  for (const limit of new Set(refused.flatMap(({ right }) => right.limit ?? [])))
    limits.push(`${limit} Apply what \`quarterdeck cluster rbac\` prints.`);
  if (Number(major) === 1 && Number.parseInt(minor, 10) < OLDEST)
    limits.push(`Versions before 1.${OLDEST} are not tried: upgrade the cluster.`);
  if (storage === 0)
    limits.push('No storage class: services with volumes wait for volumes that somebody makes by hand.');
  limits.push(...limitsOf(extensions), ...(await uncountedReasons(cluster)));
  const description = `Kubernetes ${gitVersion}, ${nodes} ${nodes === 1 ? 'node' : 'nodes'}`;
  const withoutHelm = await helmProblem(cluster.helm);
  const missing = {
    ...missingFeatures(lacking),
    ...(withoutHelm === null ? {} : { helm: withoutHelm }),
    ...(extensions.apis.has(API.keda) ? {} : { keda: KEDA_MISSING }),
  };
  return { ok: true, description, limits, ...(Object.keys(missing).length > 0 ? { missing } : {}) };
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

/** Right that the account lacks, for people. */
interface Lack {
  text: string;
  feature: RuntimeFeature | undefined;
}

const lackOf = (lacking: Lack[]): string =>
  `the account of the kubeconfig lacks rights: ${lacking.map(({ text }) => text).join('; ')}. Apply what \`quarterdeck cluster rbac\` prints.`;

/** Returns the features for which the account lacks rights, each with the remedy. */
function missingFeatures(lacking: Lack[]): Partial<Record<RuntimeFeature, string>> {
  const features = [...new Set(lacking.flatMap(({ feature }) => feature ?? []))];
  const remedyOf = (one: RuntimeFeature) => {
    const sentence = lackOf(lacking.filter(({ feature }) => feature === one));
    return `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}`;
  };
  return Object.fromEntries(features.map((feature) => [feature, remedyOf(feature)]));
}

/** Returns the number of objects at a path: the cluster tells it with the first of them. */
async function count({ connection }: Cluster, path: string): Promise<number> {
  const { items, metadata } = await connection.get<List<ClusterObject>>(path, { query: { limit: 1 } });
  return items.length + (metadata.remainingItemCount ?? 0);
}

/** Use of a right that the account lacks. */
interface Refused {
  right: Right;
  verb: string;
}

/** Asks the cluster for each right. */
async function listRefused(cluster: Cluster): Promise<Refused[]> {
  const apis = await listApis(cluster);
  const needed = RIGHTS.filter(({ api }) => api === undefined || apis.has(api));
  const asked = needed.flatMap((right) => right.verbs.map((verb) => ({ right, verb })));
  const answers = await Promise.all(asked.map(({ right, verb }) => isAllowed(cluster, right, verb)));
  return asked.filter((_, n) => !answers[n]);
}

function toLacks(refused: Refused[]): Lack[] {
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
