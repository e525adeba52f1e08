import type { WorkloadIdentity } from '#runtimes/runtime.ts';
import { list, pathOf, type Cluster, type Kind } from '../cluster.ts';
import { unlessGone } from '../errors.ts';
import type { ClusterObject, Pod } from '../kinds.ts';
import { LABEL, namespaceOf } from '../labels.ts';

/** Objects of a chart that run pods. */
export interface ChartWorkload extends ClusterObject {
  spec: {
    replicas?: number;
    suspend?: boolean;
    selector?: Selector;
    template?: unknown;
    volumeClaimTemplates?: { metadata: { name: string } }[];
  };
  status?: Record<string, unknown>;
}

interface Selector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: string; values?: string[] }[];
}

const KINDS: Kind[] = ['Deployment', 'StatefulSet', 'DaemonSet', 'Job', 'CronJob'];
/** Label that helm sets on all objects of its releases. */
const OF_HELM = 'app.kubernetes.io/managed-by=Helm';

/** Returns whether an object is of the release of that name. */
export const isOfRelease = ({ metadata }: ClusterObject, name: string): boolean =>
  metadata.annotations?.['meta.helm.sh/release-name'] === name &&
  metadata.annotations['meta.helm.sh/release-namespace'] === metadata.namespace;

/** Returns the objects of a release that run pods. Helm marks each with the release's name. */
export async function listChartWorkloads(
  cluster: Cluster,
  identity: WorkloadIdentity,
  release: string,
): Promise<ChartWorkload[]> {
  const namespace = namespaceOf(identity);
  const found = await Promise.all(
    KINDS.map(async (kind) => {
      const objects = await list<ChartWorkload>(cluster, kind, namespace, OF_HELM);
      // Lists leave the kinds of their items out.
      return objects.map((object) => ({ ...object, kind }));
    }),
  );
  return found.flat().filter((object) => isOfRelease(object, release));
}

/** Returns the pods of workloads that do not end, oldest first. */
export const listChartPods = async (
  cluster: Cluster,
  identity: WorkloadIdentity,
  workloads: ChartWorkload[],
): Promise<Pod[]> =>
  (await listAllPods(cluster, identity, workloads)).filter(({ metadata }) => !metadata.deletionTimestamp);

/** Returns the pods of workloads, oldest first. Those of other services are never among them, whatever a chart selects. */
export async function listAllPods(
  cluster: Cluster,
  identity: WorkloadIdentity,
  workloads: ChartWorkload[],
): Promise<Pod[]> {
  const selectors = workloads.flatMap(({ spec }) => (spec.selector ? [spec.selector] : []));
  if (selectors.length === 0) return [];
  const pods = await list<Pod>(cluster, 'Pod', namespaceOf(identity), `!${LABEL.service}`);
  return pods
    .filter(({ metadata }) => selectors.some((selector) => isSelected(metadata.labels ?? {}, selector)))
    .toSorted((one, other) => orderOf(one).localeCompare(orderOf(other)));
}

const orderOf = ({ metadata }: Pod): string => `${metadata.creationTimestamp} ${metadata.name}`;

function isSelected(labels: Record<string, string>, { matchLabels = {}, matchExpressions = [] }: Selector): boolean {
  const isEmpty = Object.keys(matchLabels).length + matchExpressions.length === 0;
  if (isEmpty || !Object.entries(matchLabels).every(([key, value]) => labels[key] === value)) return false;
  return matchExpressions.every(({ key, operator, values = [] }) => {
    const value = labels[key];
    switch (operator) {
      case 'In':
        return value !== undefined && values.includes(value);
      case 'NotIn':
        return value === undefined || !values.includes(value);
      case 'Exists':
        return value !== undefined;
      default:
        return value === undefined;
    }
  });
}

/** Number of pods that a workload wants and has ready; null for what ends by itself. */
export function countsOf({ kind, spec, status = {} }: ChartWorkload): { wanted: number; ready: number } | null {
  const count = (name: string) => Number(status[name] ?? 0);
  switch (kind) {
    case 'Deployment':
      return { wanted: spec.replicas ?? 1, ready: count('availableReplicas') };
    case 'StatefulSet':
      return { wanted: spec.replicas ?? 1, ready: count('readyReplicas') };
    case 'DaemonSet':
      return { wanted: count('desiredNumberScheduled'), ready: count('numberReady') };
    default:
      return null;
  }
}

/** Returns whether the controllers have seen the present specification of a workload. */
export const isSeen = ({ metadata, status }: ChartWorkload): boolean =>
  status?.['observedGeneration'] === undefined || Number(status['observedGeneration']) >= (metadata.generation ?? 0);

/** Changes fields of a workload; one that is gone stays gone. */
export const mergeInto = async (
  { connection }: Cluster,
  kind: Kind,
  namespace: string,
  name: string,
  body: object,
): Promise<void> => {
  const type = 'application/merge-patch+json';
  await unlessGone(connection.call('PATCH', pathOf(kind, namespace, name), { body, type }));
};
