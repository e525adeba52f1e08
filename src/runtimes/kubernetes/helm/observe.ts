import type { Handle, Observation, WorkloadIdentity } from '#runtimes/runtime.ts';
import type { Cluster } from '../cluster.ts';
import type { Pod } from '../kinds.ts';
import { LABEL } from '../labels.ts';
import { instanceOf, troubleOf } from '../pods.ts';
import { readRecord, recordName, type ServiceRecord } from '../record/index.ts';
import { AlteredRecord } from '../record/seal.ts';
import { recordAnew } from './anew.ts';
import { countsOf, listChartPods, listChartWorkloads } from './workloads.ts';

/** Returns the present state of a chart, by the objects of its release that run pods (`Runtime.observe`). */
export async function observeChart(cluster: Cluster, handle: Handle): Promise<Observation> {
  const { identity } = handle;
  try {
    return await observe(cluster, identity, await readRecord(cluster, identity, identity.generation));
  } catch (error) {
    if (!(error instanceof AlteredRecord)) throw error;
    // The next deployment puts the record right.
    const drift = [{ object: `ConfigMap ${recordName(identity.serviceId)}`, field: 'data.record', manager: null }];
    const hostname = String(handle.data['hostname']);
    return { ...(await observe(cluster, identity, recordAnew(identity, hostname))), drift };
  }
}

async function observe(
  cluster: Cluster,
  identity: WorkloadIdentity,
  record: ServiceRecord | null,
): Promise<Observation> {
  if (!record?.chart) return { state: 'absent', generation: null, instances: [], message: '' };
  const workloads = await listChartWorkloads(cluster, identity, record.hostname);
  const pods = (await listChartPods(cluster, identity, workloads)).filter(
    ({ status }) => status?.phase !== 'Succeeded',
  );
  const instances = pods.filter(({ status }) => status?.phase !== 'Failed').map(instanceOf);
  const counts = workloads.flatMap((workload) => countsOf(workload) ?? []);
  const wanted = counts.reduce((sum, count) => sum + count.wanted, 0);
  const ready = counts.reduce((sum, count) => sum + Math.min(count.ready, count.wanted), 0);
  const { generation } = record;
  if (record.isStopped) return { state: 'stopped', generation: null, instances, message: '' };
  if (!record.chart.isDeployed)
    return { state: 'partial', generation: null, instances, message: 'The chart was never applied with success.' };
  if (ready >= wanted) return { state: 'running', generation, instances, message: '' };
  const isFailed = ready === 0 && instances.some(({ state }) => state === 'restarting');
  return { state: isFailed ? 'failed' : 'partial', generation, instances, message: messageOf(pods, ready, wanted) };
}

function messageOf(pods: Pod[], ready: number, wanted: number): string {
  const count = `${ready} of ${wanted} pods of the chart are ready`;
  const trouble = pods.map((pod) => ({ name: pod.metadata.name, why: troubleOf(pod) })).find(({ why }) => why !== null);
  return trouble ? `${count}; ${trouble.name}: ${trouble.why}.` : `${count}.`;
}

/** Returns the pods of a chart for logs and programs, with the generation that they are of. */
export async function podsOfChart(cluster: Cluster, { identity }: Handle): Promise<Pod[]> {
  const record = await readRecord(cluster, identity, identity.generation);
  if (!record?.chart) return [];
  const workloads = await listChartWorkloads(cluster, identity, record.hostname);
  const label = { [LABEL.generation]: String(record.generation) };
  return (await listChartPods(cluster, identity, workloads)).map((pod) => ({
    ...pod,
    metadata: { ...pod.metadata, labels: { ...pod.metadata.labels, ...label } },
  }));
}
