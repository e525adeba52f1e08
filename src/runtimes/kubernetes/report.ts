import type { RuntimeReport } from '#runtimes/runtime.ts';
import type { Cluster } from './cluster.ts';
import { asRuntimeError } from './errors.ts';
import type { ClusterObject, List } from './kinds.ts';
import { RIGHTS, type Right } from './rights.ts';

/** Oldest version that is known to work: `preStop.sleep` and sockets for programs in pods are there since then. */
const OLDEST = 30;

interface Review {
  status: { allowed: boolean; reason?: string };
}

/** Milliseconds for which quick checks repeat rights and sizes: a look at them takes a request for each right. */
const REPEATED_MS = 10 * 60_000;

/** Reports version, size, missing rights and limits of a cluster. */
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

  /** Looks at the cluster (`Runtime.check`). Never throws. */
  async check(isQuick: boolean): Promise<RuntimeReport> {
    try {
      const last = isQuick && this.#last && performance.now() - this.#last.at < REPEATED_MS ? this.#last.report : null;
      if (!last) return await this.#look();
      await this.#cluster.connection.get('/version');
      return last;
    } catch (error) {
      return { ok: false, description: asRuntimeError(error).message, limits: [] };
    }
  }

  async #look(): Promise<RuntimeReport> {
    const report = await look(this.#cluster);
    this.#last = report.ok ? { report, at: performance.now() } : null;
    return report;
  }
}

async function look(cluster: Cluster): Promise<RuntimeReport> {
  const { gitVersion, major, minor } =
    await cluster.connection.get<Record<'gitVersion' | 'major' | 'minor', string>>('/version');
  const refused = await listRefused(cluster);
  const missing = toSentences(refused.filter(({ verb }) => verb !== 'watch'));
  if (missing.length > 0)
    return {
      ok: false,
      description: `Kubernetes ${gitVersion}: the account of the kubeconfig lacks rights: ${missing.join('; ')}. Apply what \`quarterdeck cluster rbac\` prints.`,
      limits: [],
    };
  const [nodes, storage, ingress] = await Promise.all([
    count(cluster, '/api/v1/nodes'),
    count(cluster, '/apis/storage.k8s.io/v1/storageclasses'),
    count(cluster, '/apis/networking.k8s.io/v1/ingressclasses'),
  ]);
  const limits = [];
  // Accounts of earlier releases lack it, and can do without.
  const unwatched = toSentences(refused);
  if (unwatched.length > 0)
    limits.push(
      `The account of the kubeconfig lacks rights: ${unwatched.join('; ')}. What happens in the cluster is seen up to 30 s late; apply what \`quarterdeck cluster rbac\` prints.`,
    );
  if (Number(major) === 1 && Number.parseInt(minor, 10) < OLDEST)
    limits.push(`Versions before 1.${OLDEST} are not tried: upgrade the cluster.`);
  if (storage === 0)
    limits.push('No storage class: services with volumes wait for volumes that somebody makes by hand.');
  if (ingress === 0)
    limits.push('No ingress class: nothing is reached from outside until an ingress controller is installed.');
  return { ok: true, description: `Kubernetes ${gitVersion}, ${nodes} ${nodes === 1 ? 'node' : 'nodes'}`, limits };
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
  const asked = RIGHTS.flatMap((right) => right.verbs.map((verb) => ({ right, verb })));
  const answers = await Promise.all(asked.map(({ right, verb }) => isAllowed(cluster, right, verb)));
  return asked.filter((_, n) => !answers[n]);
}

function toSentences(refused: Refused[]): string[] {
  return RIGHTS.flatMap((right) => {
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
