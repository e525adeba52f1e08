import type { FoundWorkload, Handle, Observation, WorkloadIdentity } from '#runtimes/runtime.ts';
import { list, type Cluster } from './cluster.ts';
import type { ConfigMap, FoundDeployment, Pod } from './kinds.ts';
import { ANNOTATION, LABEL } from './labels.ts';
import { generationOf, instanceOf, isReady, listPods, troubleOf } from './pods.ts';
import { readRecord, type ServiceRecord } from './record.ts';
import { leastOf } from './scaling.ts';

/** Returns the present state of a service (`Runtime.observe`). */
export async function observeService(cluster: Cluster, { identity }: Handle): Promise<Observation> {
  const [record, pods] = await Promise.all([readRecord(cluster, identity), listPods(cluster, identity)]);
  if (!record && pods.length === 0) return { state: 'absent', generation: null, instances: [], message: '' };
  const ready = pods.filter(isReady);
  const present = record?.isStopped ? record.candidate : (record?.serving ?? record?.candidate);
  const wanted = present ? leastOf(present) : 0;
  const generations = ready.map(generationOf);
  const serving = record?.serving?.generation;
  return {
    // Without events KEDA leaves no pod, and the service waits for the next.
    state: present?.autoscaler && wanted === 0 ? 'running' : stateOf(wanted, ready.length, pods),
    generation: serving !== undefined && generations.includes(serving) ? serving : (generations.at(-1) ?? null),
    instances: pods.map(instanceOf),
    message: ready.length < wanted ? messageOf(pods, ready.length, wanted) : '',
  };
}

function stateOf(wanted: number, ready: number, pods: Pod[]): Observation['state'] {
  if (wanted === 0) return 'stopped';
  if (ready >= wanted) return 'running';
  if (ready === 0 && pods.some((pod) => instanceOf(pod).state === 'restarting')) return 'failed';
  return 'partial';
}

function messageOf(pods: Pod[], ready: number, wanted: number): string {
  const trouble = pods.map((pod) => ({ name: pod.metadata.name, why: troubleOf(pod) })).find(({ why }) => why !== null);
  const count = `${ready} of ${wanted} instances are ready`;
  return trouble ? `${count}; ${trouble.name}: ${trouble.why}.` : `${count}.`;
}

/** Returns every workload of the installation in the cluster (`Runtime.list`). */
export async function listWorkloads(cluster: Cluster): Promise<FoundWorkload[]> {
  const { installation } = cluster;
  const found = await list<FoundDeployment>(cluster, 'Deployment', undefined, `${LABEL.installation}=${installation}`);
  const workloads = found.map(({ metadata: { labels = {}, annotations = {} }, status }): FoundWorkload => ({
    identity: identityOf(installation, labels, Number(labels[LABEL.generation])),
    displayName: annotations[ANNOTATION.name] ?? '',
    state: (status?.replicas ?? 0) > 0 ? 'running' : 'stopped',
  }));
  return [...workloads, ...(await listCharts(cluster))];
}

async function listCharts(cluster: Cluster): Promise<FoundWorkload[]> {
  const { installation } = cluster;
  const selector = `${LABEL.installation}=${installation},${LABEL.service}`;
  const records = await list<ConfigMap>(cluster, 'ConfigMap', undefined, selector);
  return records.flatMap(({ metadata: { labels = {} }, data }) => {
    const record = JSON.parse(data?.['record'] ?? 'null') as ServiceRecord | null;
    if (!record?.chart) return [];
    const identity = identityOf(installation, labels, record.generation);
    return [{ identity, displayName: record.chart.displayName, state: record.isStopped ? 'stopped' : 'running' }];
  });
}

const identityOf = (installation: string, labels: Record<string, string>, generation: number): WorkloadIdentity => ({
  installation,
  organizationId: labels[LABEL.organization]!,
  projectId: labels[LABEL.project]!,
  environmentId: labels[LABEL.environment]!,
  serviceId: labels[LABEL.service]!,
  generation,
});
