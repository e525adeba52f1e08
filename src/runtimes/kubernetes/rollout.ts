import { setTimeout as sleep } from 'node:timers/promises';
import { isReplaced } from '#runtimes/attempt.ts';
import {
  LAST_LINES,
  RuntimeError,
  cancelled,
  type Handle,
  type LogLine,
  type RuntimeContext,
  type WorkloadIdentity,
} from '#runtimes/runtime.ts';
import { find, type Cluster } from './cluster.ts';
import { untilReached } from './endpoints.ts';
import { asRuntimeError } from './errors.ts';
import type { FoundDeployment, Pod } from './kinds.ts';
import { LABEL, namespaceOf } from './labels.ts';
import { lastLinesOf } from './logs.ts';
import { tellOutside } from './outside.ts';
import { Patience, insist } from './patience.ts';
import { generationOf, inOrder, instanceOf, isReady, listPods, troubleOf } from './pods.ts';
import { changeRecord, hasPorts, readRecord, requireNewest, type KeptRelease, type ServiceRecord } from './record.ts';
import { leastOf } from './scaling.ts';
import { applyRelease, removeMade, removeOldSecrets, removeRollout, stopped } from './submit.ts';
import { Wake } from './watch/wake.ts';

/** Milliseconds between two looks at a rollout where the cluster is not followed, and until it is. */
const LOOK_MS = 400;
/** Milliseconds between two looks where changes wake. */
const WATCHED_MS = 10_000;
/** Milliseconds that the pods of a candidate may take to end once it is taken back. */
const WITHDRAWN_MS = 15_000;
/** Milliseconds for which each step behind a rollout is tried again while the API server is away. */
const AWAY_MS = 30_000;
/** Log lines of the candidate that an error quotes. */
const LOG_LINES = 20;

/** Waits until a release is rolled out (`Runtime.progress`). */
export async function followRollout(cluster: Cluster, handle: Handle, context: RuntimeContext): Promise<void> {
  const { identity } = handle;
  try {
    await waitForRollout(cluster, handle, context);
  } catch (error) {
    if (isReplaced(context)) throw cancelled(error);
    const failure = context.signal.aborted ? cancelled(context.signal.reason) : asRuntimeError(error);
    // Whose API server is away cannot be told anything; the next deployment replaces the candidate.
    if (failure.code !== 'superseded' && failure.code !== 'unreachable') await takeBack(cluster, identity);
    throw failure;
  }
  const record = await insist(AWAY_MS, () => noteServing(cluster, identity));
  if (!record) return;
  await insist(AWAY_MS, () => removeOldSecrets(cluster, identity, record.serving?.generation ?? identity.generation));
  const { serving } = record;
  if (serving && hasPorts(serving) && leastOf(serving) > 0)
    await untilReached(cluster, identity, record.hostname, context);
  await tellOutside(cluster, identity, serving?.objects ?? [], context);
}

/** Makes the candidate the release that serves, once it is rolled out. */
const noteServing = (cluster: Cluster, identity: WorkloadIdentity): Promise<ServiceRecord | null> =>
  changeRecord(cluster, identity, (present) =>
    present?.candidate
      ? {
          ...present,
          serving: present.candidate,
          candidate: null,
          isStopped: false,
          made: present.candidate.objects ?? present.made,
        }
      : null,
  );

async function waitForRollout(cluster: Cluster, handle: Handle, context: RuntimeContext): Promise<void> {
  const { serviceId } = handle.identity;
  const wake = new Wake();
  const leave = cluster.cache?.use({ changed: (id) => (id === serviceId ? wake.ring() : undefined) });
  try {
    await lookUntilDone(cluster, handle, context, wake);
  } finally {
    leave?.();
  }
}

async function lookUntilDone(
  cluster: Cluster,
  { identity, data }: Handle,
  context: RuntimeContext,
  wake: Wake,
): Promise<void> {
  const told = new Set<string>();
  const tell = (line: string) => tellOnce(line, told, context);
  const following: Following = { cluster, identity, name: String(data['hostname']), change: null, tell };
  const patience = new Patience(tell);
  for (;;) {
    context.signal.throwIfAborted();
    if (await patience.ask(() => look(following))) return;
    if (following.change !== null && cluster.cache?.isCurrent) await wake.wait(WATCHED_MS, context.signal);
    else await sleep(LOOK_MS, undefined, { signal: context.signal });
  }
}

/** Tells a line unless it was told before. */
export function tellOnce(line: string, told: Set<string>, context: RuntimeContext): void {
  if (told.has(line)) return;
  told.add(line);
  context.log(line);
}

/** Rollout that is followed. */
interface Following {
  cluster: Cluster;
  identity: WorkloadIdentity;
  /** Name of the Deployment. */
  name: string;
  /** Change of the Deployment's specification that was read from the cluster; a cache that is behind it tells nothing. */
  change: number | null;
  tell(line: string): void;
}

/** Returns the Deployment: kept, or read where the cache does not follow the cluster or is behind. */
async function readDeployment(following: Following): Promise<FoundDeployment | null> {
  const { cluster, identity, name, change } = following;
  const kept = cluster.cache?.of(identity, name)?.deployment;
  if (kept && change !== null && (kept.metadata.generation ?? 0) >= change) return kept;
  const deployment = await find<FoundDeployment>(cluster, 'Deployment', namespaceOf(identity), name);
  following.change = deployment?.metadata.generation ?? null;
  return deployment;
}

const readPods = async ({ cluster, identity, name }: Following): Promise<Pod[]> => {
  const kept = cluster.cache?.of(identity, name);
  return kept ? inOrder(kept.pods) : listPods(cluster, identity);
};

/** Returns whether a rollout is complete. Throws RuntimeError `not_ready` once its time is over. */
async function look(following: Following): Promise<boolean> {
  const { cluster, identity, name, tell } = following;
  const deployment = await readDeployment(following);
  if (!deployment) {
    requireNewest(await readRecord(cluster, identity), identity.generation);
    throw new RuntimeError('failed', `The Deployment ${name} is gone: somebody deleted it.`);
  }
  const present = Number(deployment.spec.template.metadata.labels[LABEL.generation]);
  if (present > identity.generation)
    throw new RuntimeError('superseded', `Generation ${present} of the service was taken over already.`);
  if (present < identity.generation)
    throw new RuntimeError('failed', `Generation ${identity.generation} was taken back: generation ${present} serves.`);
  const { status = {}, spec, metadata } = deployment;
  if ((status.observedGeneration ?? 0) < (metadata.generation ?? 0)) return false;
  const counts = [status.replicas, status.updatedReplicas, status.availableReplicas];
  if (counts.every((count) => (count ?? 0) === spec.replicas)) return true;
  const pods = (await readPods(following)).filter((pod) => generationOf(pod) === present);
  for (const pod of pods) {
    const trouble = isReady(pod) ? null : troubleOf(pod);
    if (trouble !== null) tell(`${pod.metadata.name}: ${trouble}.`);
  }
  const progressing = status.conditions?.find(({ type }) => type === 'Progressing');
  if (progressing?.reason === 'ProgressDeadlineExceeded') throw await notReady(cluster, deployment, pods);
  const refused = status.conditions?.find(({ type, status: is }) => type === 'ReplicaFailure' && is === 'True');
  if (refused) tell(`The cluster makes no pods: ${refused.message ?? refused.reason ?? 'it gives no reason'}`);
  return false;
}

async function notReady(cluster: Cluster, { spec, status }: FoundDeployment, pods: Pod[]): Promise<RuntimeError> {
  const failed = pods.find((pod) => !isReady(pod));
  const refused = status?.conditions?.find(({ type }) => type === 'ReplicaFailure')?.message;
  const unknown =
    failed && instanceOf(failed).state === 'running' ? 'its checks do not pass' : 'it has not started yet';
  const why = (failed ? troubleOf(failed) : refused) ?? unknown;
  const lines: LogLine[] = failed ? await lastLinesOf(cluster, failed, LAST_LINES) : [];
  const written = lines.slice(-LOG_LINES).map(({ text }) => `  ${text}`);
  const log = written.length > 0 ? `Last lines of its log:\n${written.join('\n')}` : 'It wrote no log.';
  const name = failed?.metadata.name ?? 'The release';
  return new RuntimeError(
    'not_ready',
    `${name} was not ready within ${spec.progressDeadlineSeconds} s: ${why}. ${log}`,
  ).withLines(lines);
}

/**
 * Takes a candidate back: the release before serves on, or nothing is left but volumes. The record tells of the candidate until that is
 * done, so that each step may be repeated, also by another process.
 */
async function takeBack(cluster: Cluster, identity: WorkloadIdentity): Promise<void> {
  const record = await insist(AWAY_MS, () => readRecord(cluster, identity));
  requireNewest(record, identity.generation);
  if (!record?.candidate) return;
  const { candidate, serving } = record;
  await insist(AWAY_MS, () => restoreBefore(cluster, identity, record));
  await insist(AWAY_MS, () => changeRecord(cluster, identity, (present) => present && { ...present, candidate: null }));
  // A restart has the generation of the release that it restarts.
  if (candidate.generation !== serving?.generation)
    await insist(AWAY_MS, () => untilWithdrawn(cluster, identity, candidate));
}

async function restoreBefore(
  cluster: Cluster,
  identity: WorkloadIdentity,
  { serving, hostname, isStopped, made = [] }: ServiceRecord,
): Promise<void> {
  if (serving) return applyRelease(cluster, identity, isStopped ? stopped(serving) : serving);
  await removeRollout(cluster, identity, hostname);
  await removeMade(cluster, identity, made.filter(isOutside));
}

/** Returns whether an object leads traffic from outside to a service. */
const isOutside = (name: string): boolean => /^(Ingress|HTTPRoute|GRPCRoute|ListenerSet)\//.test(name);

/** Waits until the pods of a candidate end. What still ends after that time does so without us. */
async function untilWithdrawn(
  cluster: Cluster,
  identity: WorkloadIdentity,
  { generation }: KeptRelease,
): Promise<void> {
  for (const end = Date.now() + WITHDRAWN_MS; Date.now() < end; await sleep(LOOK_MS)) {
    const pods = await listPods(cluster, identity);
    if (!pods.some((pod) => generationOf(pod) === generation)) return;
  }
}
