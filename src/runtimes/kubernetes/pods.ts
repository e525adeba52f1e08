import { list, type Cluster } from './cluster.ts';
import type { ContainerState, Ended, Pod } from './kinds.ts';
import { LABEL, namespaceOf, ofService } from './labels.ts';
import { CONTAINER } from './objects.ts';
import type { InstanceExit, InstanceObservation, WorkloadIdentity } from '#runtimes/runtime.ts';

/** Returns whether a pod counts: nothing leads any more to those that end. */
export const isPresent = ({ metadata, status }: Pod): boolean =>
  !metadata.deletionTimestamp && status?.phase !== 'Failed';

/** Returns the pods of a service that count, oldest first. */
export async function listPods(cluster: Cluster, identity: WorkloadIdentity): Promise<Pod[]> {
  const pods = await list<Pod>(cluster, 'Pod', namespaceOf(identity), `${ofService(identity)},!${LABEL.task}`);
  return inOrder(pods.filter(isPresent));
}

/** Sorts pods by their age, the oldest first. */
export const inOrder = (pods: Pod[]): Pod[] =>
  pods.toSorted((one, other) => orderOf(one).localeCompare(orderOf(other)));

const orderOf = ({ metadata }: Pod): string => `${metadata.creationTimestamp} ${metadata.name}`;

export const generationOf = ({ metadata }: Pod): number => Number(metadata.labels?.[LABEL.generation] ?? 0);

/** Returns the name of the container that stands for a pod: the one that its chart names, ours, or the first. */
export function containerNameOf({ metadata, spec }: Pick<Pod, 'metadata'> & Partial<Pod>): string {
  const names = ((spec?.['containers'] ?? []) as { name: string }[]).map(({ name }) => name);
  const named = metadata.annotations?.['kubectl.kubernetes.io/default-container'];
  return named ?? names.find((name) => name === CONTAINER) ?? names[0] ?? '';
}

export const containerOf = (pod: Pod) =>
  pod.status?.containerStatuses?.find(({ name }) => name === containerNameOf(pod));

export const isReady = (pod: Pod): boolean =>
  pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;

export const hasRestarted = (pod: Pod): boolean => (containerOf(pod)?.restartCount ?? 0) > 0;

/** Describes a pod as an instance. */
export function instanceOf(pod: Pod): InstanceObservation {
  const container = containerOf(pod);
  const startedAt = container?.state?.running?.startedAt;
  const last = container?.lastState?.terminated ?? container?.state?.terminated;
  return {
    name: pod.metadata.name,
    state: stateOf(pod, container?.state),
    restarts: container?.restartCount ?? 0,
    startedAt: startedAt === undefined ? null : new Date(startedAt).toISOString(),
    lastExit: last ? exitOf(last) : null,
  };
}

function stateOf(pod: Pod, state: ContainerState | undefined): InstanceObservation['state'] {
  if (isReady(pod)) return 'ready';
  if (state?.running) return 'running';
  if (state?.terminated || state?.waiting?.reason === 'CrashLoopBackOff') return 'restarting';
  return 'starting';
}

/** Names of signals by their number, for those that end containers. */
const SIGNALS: Record<number, string> = { 6: 'SIGABRT', 9: 'SIGKILL', 11: 'SIGSEGV', 15: 'SIGTERM' };

/** Returns how a container ended. */
export function exitOf(ended: Ended): InstanceExit {
  const number = ended.signal ?? (ended.exitCode > 128 && ended.exitCode < 160 ? ended.exitCode - 128 : 0);
  const signal = SIGNALS[number] ?? null;
  return {
    code: signal === null ? ended.exitCode : null,
    signal,
    reason: ended.reason === 'OOMKilled' ? 'out of memory' : (ended.message ?? ended.reason ?? ''),
    at: new Date(ended.finishedAt ?? 0).toISOString(),
  };
}

/** Explains in plain words why a pod is not ready; null where there is nothing to tell. */
export function troubleOf(pod: Pod): string | null {
  const scheduled = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled');
  if (scheduled?.status === 'False')
    return `no node takes it: ${scheduled.message ?? scheduled.reason ?? 'the cluster gives no reason'}`;
  const { state, lastState } = containerOf(pod) ?? {};
  const { reason, message } = state?.waiting ?? {};
  const last = state?.terminated ?? lastState?.terminated;
  if (last && (state?.terminated || reason === 'CrashLoopBackOff')) return `it ended with ${endOf(last)}`;
  if (reason === 'ErrImagePull' || reason === 'ImagePullBackOff')
    return `its image cannot be pulled: ${message ?? 'the cluster gives no reason'}`;
  if (reason === undefined || reason === 'ContainerCreating' || reason === 'PodInitializing') return null;
  return message ? `${reason}: ${message}` : reason;
}

function endOf(ended: Ended): string {
  const { code, signal } = exitOf(ended);
  const how = signal === null ? `status ${code}` : `the signal ${signal}`;
  return ended.reason === 'OOMKilled' ? `${how} (out of memory)` : how;
}
