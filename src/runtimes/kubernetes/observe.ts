import type { DriftedField, FoundWorkload, Handle, Observation, WorkloadIdentity } from '#runtimes/runtime.ts';
import { find, list, type Cluster } from './cluster.ts';
import { driftOf } from './drift.ts';
import type { RecordSummary } from './kept.ts';
import type { ClusterObject, ConfigMap, FoundDeployment, Pod } from './kinds.ts';
import { ANNOTATION, LABEL, namespaceOf } from './labels.ts';
import { generationOf, inOrder, instanceOf, isReady, listPods, troubleOf } from './pods.ts';
import { fromRecordIn, readRecord, recordName, type ServiceRecord } from './record/index.ts';
import { recentMarks } from './record/marks.ts';
import { AlteredRecord } from './record/seal.ts';
import { ownersOf, reduceService, summaryOf } from './watch/reduced.ts';

/** Returns the present state of a service (`Runtime.observe`), from the cache where it follows the cluster. */
export async function observeService(cluster: Cluster, handle: Handle): Promise<Observation> {
  try {
    return await observeRecorded(cluster, handle);
  } catch (error) {
    if (error instanceof AlteredRecord) return observeAltered(cluster, handle);
    throw error;
  }
}

/** Returns the state of a service whose record was altered, by its Deployment. The next deployment puts the record right. */
async function observeAltered(cluster: Cluster, handle: Handle): Promise<Observation> {
  const { identity } = handle;
  const [deployment, pods] = await Promise.all([findDeployment(cluster, handle), listPods(cluster, identity)]);
  const ready = pods.filter(isReady);
  const wanted = deployment?.spec.replicas ?? 0;
  const drift = [{ object: `ConfigMap ${recordName(identity.serviceId)}`, field: 'data.record', manager: null }];
  const instances = pods.map(instanceOf);
  if (!deployment) return { state: 'absent', generation: null, instances, message: '', drift };
  return {
    state: stateOf(wanted, ready.length, pods),
    generation: ready.map(generationOf).at(-1) ?? null,
    instances,
    message: ready.length < wanted ? messageOf(pods, ready.length, wanted) : '',
    drift,
  };
}

async function observeRecorded(cluster: Cluster, handle: Handle): Promise<Observation> {
  const cached = await readCached(cluster, handle);
  const observation = cached && observationOf(cached);
  // What is done about these is not done by what is a moment old.
  if (observation && observation.state !== 'absent' && observation.state !== 'stopped') return observation;
  return observationOf(await read(cluster, handle));
}

/** Parts of an observation. */
interface Seen {
  record: RecordSummary | null;
  /** Number of pods that the Deployment asks for; null without one. */
  replicas: number | null;
  pods: Pod[];
  drift: DriftedField[];
}

/** Returns null where the cache does not follow the cluster, or does not know the release of the handle yet. */
async function readCached(cluster: Cluster, handle: Handle): Promise<Seen | null> {
  const { identity } = handle;
  const kept = cluster.cache?.of(identity, hostnameOf(handle));
  if (!kept?.record || kept.record.generation < identity.generation) return null;
  if (!kept.record.isSealed && (await recentMarks(cluster, namespaceOf(identity))).has(identity.serviceId)) return null;
  const { record, deployment, service, pods } = kept;
  const drift = deployment && !record.candidate ? await driftWith(cluster, handle, deployment.owners) : [];
  return {
    record,
    replicas: deployment ? (deployment.spec.replicas ?? 1) : null,
    pods: inOrder(pods),
    drift: [...drift, ...driftOfService(handle, record, service)],
  };
}

/** Returns the drift of a Deployment. Reads it only if the owners of its fields have changed. */
async function driftWith(cluster: Cluster, handle: Handle, owners: string): Promise<DriftedField[]> {
  const known = cluster.cache!.driftOf(handle.identity.serviceId, owners);
  if (known) return known;
  const [record, deployment] = await Promise.all([
    readRecord(cluster, handle.identity, handle.identity.generation),
    findDeployment(cluster, handle),
  ]);
  return deployment ? noteDrift(cluster, handle, record, deployment) : [];
}

function noteDrift(
  cluster: Cluster,
  { identity }: Handle,
  record: ServiceRecord | null,
  deployment: FoundDeployment,
): DriftedField[] {
  const release = presentOf(record);
  // While a release is rolled out both are there.
  if (!release || record?.candidate) return [];
  const drift = driftOf(release.deployment, deployment);
  cluster.cache?.noteDrift(identity.serviceId, ownersOf(deployment.metadata), drift);
  return drift;
}

async function read(cluster: Cluster, handle: Handle): Promise<Seen> {
  const { identity } = handle;
  const [record, pods, deployment, service] = await Promise.all([
    readRecord(cluster, identity, identity.generation),
    listPods(cluster, identity),
    findDeployment(cluster, handle),
    find(cluster, 'Service', namespaceOf(identity), hostnameOf(handle)),
  ]);
  const summary = record && summaryOf(record, true);
  const drift = deployment ? noteDrift(cluster, handle, record, deployment) : [];
  return {
    record: summary,
    replicas: deployment ? (deployment.spec.replicas ?? 1) : null,
    pods,
    drift: summary ? [...drift, ...driftOfService(handle, summary, service && reduceService(service))] : [],
  };
}

const hostnameOf = ({ data }: Handle): string => String(data['hostname']);

const findDeployment = (cluster: Cluster, handle: Handle): Promise<FoundDeployment | null> =>
  find<FoundDeployment>(cluster, 'Deployment', namespaceOf(handle.identity), hostnameOf(handle));

function driftOfService(
  handle: Handle,
  { serving, isStopped, candidate }: RecordSummary,
  service: { isOurs: boolean } | null,
): DriftedField[] {
  if (!serving?.hasPorts || isStopped || candidate || service?.isOurs) return [];
  return [{ object: `Service ${hostnameOf(handle)}`, field: service ? 'spec' : '', manager: null }];
}

function presentOf<T>(record: { isStopped: boolean; serving: T | null; candidate: T | null } | null): T | null {
  if (!record) return null;
  return record.isStopped ? record.candidate : (record.serving ?? record.candidate);
}

function observationOf({ record, replicas, pods, drift }: Seen): Observation {
  const isGone = record?.serving && !record.isStopped && replicas === null;
  if ((!record && pods.length === 0) || isGone)
    return { state: 'absent', generation: null, instances: pods.map(instanceOf), message: '' };
  const ready = pods.filter(isReady);
  const present = presentOf(record);
  // KEDA chooses between none and several by events.
  const isIdle = present?.isScaled === true && present.replicas === 0;
  const wanted = isIdle ? (replicas ?? 0) : (present?.replicas ?? 0);
  const generations = ready.map(generationOf);
  const serving = record?.serving?.generation;
  return {
    // Without events there is no pod, and the service waits for the next.
    state: isIdle && wanted === 0 ? 'running' : stateOf(wanted, ready.length, pods),
    generation: serving !== undefined && generations.includes(serving) ? serving : (generations.at(-1) ?? null),
    instances: pods.map(instanceOf),
    message: ready.length < wanted ? messageOf(pods, ready.length, wanted) : '',
    drift,
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
  const workloads = found.filter(isInPlace).map(({ metadata: { labels = {}, annotations = {} }, status }) => ({
    identity: identityOf(installation, labels, Number(labels[LABEL.generation])),
    displayName: annotations[ANNOTATION.name] ?? '',
    state: (status?.replicas ?? 0) > 0 ? ('running' as const) : ('stopped' as const),
  }));
  return [...workloads, ...(await listCharts(cluster))];
}

/** Returns whether an object is in the namespace of its environment. Labels could be anyone's: a chart may make objects in its own. */
function isInPlace({ metadata: { namespace, labels = {} } }: ClusterObject): boolean {
  const environmentId = labels[LABEL.environment];
  return environmentId !== undefined && namespace === namespaceOf({ environmentId });
}

async function listCharts(cluster: Cluster): Promise<FoundWorkload[]> {
  const { installation } = cluster;
  const selector = `${LABEL.installation}=${installation},${LABEL.service}`;
  const records = await list<ConfigMap>(cluster, 'ConfigMap', undefined, selector);
  return records.filter(isInPlace).flatMap((object) => {
    const found = fromRecordIn(cluster, object, ({ generation, isStopped, chart }) => {
      const identity = identityOf(installation, object.metadata.labels ?? {}, generation);
      return chart
        ? {
            identity,
            displayName: String(chart.displayName),
            state: isStopped ? ('stopped' as const) : ('running' as const),
          }
        : null;
    });
    return found ? [found] : [];
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
