import type { Cluster } from '../cluster.ts';
import type { FoundDeployment } from '../kinds.ts';
import { findAutoscaler, findOwnDeployment, generationIn, toApplied } from './in-cluster.ts';
import type { ChartRecord, KeptRelease, ServiceRecord } from './types.ts';

/** Service whose record has no seal. */
interface Owner {
  serviceId: string;
  namespace: string;
}

/** Kinds of objects that releases made before records had seals. */
const MADE =
  /^(Service|Ingress|HTTPRoute|GRPCRoute|ListenerSet|Certificate|NetworkPolicy|PodDisruptionBudget|TriggerAuthentication|Secret)\//;
/** Highest number of pods that is taken from a record. */
const MOST_PODS = 1000;

/**
 * Reduces a record without a seal to numbers and names: anybody who may write ConfigMaps could have written it. What the pods run is taken
 * from the Deployment in the cluster. Returns null if the record cannot be of the service.
 */
export async function reduceUnsealed(
  cluster: Cluster,
  record: ServiceRecord,
  owner: Owner,
): Promise<ServiceRecord | null> {
  const { hostname, chart } = record;
  if (!hostname.endsWith(`-z${owner.serviceId.slice(0, 8)}`)) return null;
  const generation = count(record.generation);
  const common = { generation, hostname, isStopped: record.isStopped === true };
  if (chart) return { ...common, serving: null, candidate: null, chart: reduceChart(chart) };
  const present = await findOwnDeployment(cluster, owner, hostname);
  if (!present) return null;
  const kept = record.candidate ?? record.serving;
  if (!kept) return null;
  const serving = await releaseOf(cluster, present, kept, common.isStopped);
  return {
    ...common,
    serving,
    candidate: record.candidate?.generation === serving.generation ? serving : null,
    made: (record.made ?? []).filter((name) => isOwn(name, hostname)),
  };
}

const count = (value: unknown): number => (Number.isSafeInteger(value) && Number(value) >= 0 ? Number(value) : 0);

const isOwn = (name: string, hostname: string): boolean =>
  MADE.test(name) && (name.endsWith(`/${hostname}`) || name.includes(`/${hostname}-`));

/** Leaves hooks out, as any object of the environment could be named as one. */
const reduceChart = ({ attempt, displayName, timeoutSeconds, isDeployed, stopped }: ChartRecord): ChartRecord => ({
  attempt: count(attempt),
  displayName: String(displayName),
  timeoutSeconds: count(timeoutSeconds),
  isDeployed: isDeployed === true,
  stopped: stopped.map((one) => ({
    ...one,
    replicas: one.replicas === null ? null : Math.min(count(one.replicas), MOST_PODS),
  })),
  hooks: [],
});

async function releaseOf(
  cluster: Cluster,
  present: FoundDeployment,
  kept: KeptRelease,
  isStopped: boolean,
): Promise<KeptRelease> {
  const autoscaler = kept.autoscaler ? await findAutoscaler(cluster, kept.autoscaler.kind, present) : null;
  const replicas = isStopped ? Math.min(leastOf(kept), MOST_PODS) : present.spec.replicas;
  return {
    generation: generationIn(present),
    deployment: toApplied(present, autoscaler ? undefined : replicas),
    ...(autoscaler ? { autoscaler } : {}),
    ...(kept.objects ? { objects: kept.objects.filter((name) => isOwn(name, present.metadata.name)) } : {}),
  };
}

/** Returns the number of pods that a stopped release starts with: its autoscaler comes back with the next deployment. */
function leastOf({ autoscaler, deployment }: KeptRelease): number {
  const { minReplicas, minReplicaCount } = Object(autoscaler?.['spec']) as Record<string, unknown>;
  return Math.max(1, count(Object(deployment.spec).replicas ?? minReplicas ?? minReplicaCount));
}
