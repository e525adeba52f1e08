import { setTimeout as sleep } from 'node:timers/promises';
import { isReplaced, requireHeld } from '#runtimes/attempt.ts';
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
import { alsoFailed, asRuntimeError } from './errors.ts';
import { requireCurrent, type Fence } from './fence.ts';
import type { FoundDeployment, Pod } from './kinds.ts';
import { LABEL, namespaceOf } from './labels.ts';
import { lastLinesOf } from './logs.ts';
import { tellOutside } from './outside.ts';
import { Patience, insist } from './patience.ts';
import { generationOf, inOrder, instanceOf, isReady, listPods, troubleOf } from './pods.ts';
import {
  changeRecord,
  hasPorts,
  readRecord,
  requireNewest,
  type KeptRelease,
  type ServiceRecord,
} from './record/index.ts';
import { leastOf } from './scaling.ts';
import { publish, removeFormerSecrets, removeSecretsOf, withdraw } from './publish.ts';
import { applyRelease, removeRollout, stopped } from './submit.ts';
import { Wake } from './watch/wake.ts';

/** Milliseconds between two looks at a rollout where the cluster is not followed, and until it is. */
const LOOK_MS = 400;
/** Milliseconds between two looks where changes wake. */
const WATCHED_MS = 10_000;
/** Milliseconds that the pods of a candidate may take to end once it is taken back. */
const WITHDRAWN_MS = 15_000;
/** Milliseconds that pods of the release before may take to be ready again. What leads to them is changed back then. */
const SERVING_MS = 60_000;
/** Milliseconds for which each step behind a rollout is tried again while the API server is away. */
const AWAY_MS = 30_000;
/** Log lines of the candidate that an error quotes. */
const LOG_LINES = 20;

/** Right of an attempt to change the objects of a service. */
type Attempted = Fence & Required<Pick<Fence, 'context'>>;

/** Waits until a release is rolled out (`Runtime.progress`). */
export async function followRollout(cluster: Cluster, handle: Handle, context: RuntimeContext): Promise<void> {
  const { identity } = handle;
  const fence = { identity, context };
  let record: ServiceRecord;
  try {
    await waitForRollout(cluster, handle, context);
    record = await insist(AWAY_MS, () => noteServing(cluster, fence));
  } catch (error) {
    if (isReplaced(context)) throw cancelled(error);
    const failure = context.signal.aborted ? cancelled(context.signal.reason) : asRuntimeError(error);
    // Whose API server is away cannot be told anything; the next deployment replaces the candidate.
    if (failure.code === 'superseded' || failure.code === 'unreachable') throw failure;
    throw await takeBackFor(failure, cluster, fence);
  }
  await insist(AWAY_MS, () => removeFormerSecrets(cluster, identity));
  const { serving } = record;
  if (serving && hasPorts(serving) && leastOf(serving) > 0)
    await untilReached(cluster, identity, record.hostname, context);
  await tellOutside(cluster, identity, serving?.objects ?? [], context);
}

/** Takes a candidate back that failed. Returns the failure, with that of the take-back behind it where that fails, too. */
async function takeBackFor(failure: RuntimeError, cluster: Cluster, fence: Attempted): Promise<RuntimeError> {
  try {
    await takeBack(cluster, fence);
    return failure;
  } catch (error) {
    if (isReplaced(fence.context)) return cancelled(error);
    const second = asRuntimeError(error);
    if (second.code === 'superseded') return second;
    return alsoFailed(failure, `The release before could not be brought back: ${second.message}`);
  }
}

/** Makes the candidate the release that serves, once it is rolled out. Throws RuntimeError if the release does not serve then. */
async function noteServing(cluster: Cluster, fence: Attempted): Promise<ServiceRecord> {
  const { identity, context } = fence;
  const { generation } = identity;
  const record = await changeRecord(cluster, identity, async (present) => {
    requireHeld(context);
    if (present?.candidate?.generation !== generation) return null;
    await publish(cluster, fence, present);
    const { candidate } = present;
    return {
      ...present,
      serving: candidate,
      candidate: null,
      isStopped: false,
      made: candidate.objects ?? present.made,
    };
  });
  if (!record) throw new RuntimeError('failed', 'The record of the service is gone: deploy the service again.');
  if (record.serving?.generation !== generation)
    throw new RuntimeError('failed', `Generation ${generation} was taken back: deploy the service again.`);
  return record;
}

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
 * done, so that each step may be repeated, also by another process. Ends with the first step that a later attempt is in place of.
 */
async function takeBack(cluster: Cluster, fence: Attempted): Promise<void> {
  const { identity, context } = fence;
  const step = <T>(work: () => Promise<T>): Promise<T> =>
    insist(AWAY_MS, () => {
      requireHeld(context);
      return work();
    });
  const record = await step(() => requireCurrent(cluster, fence));
  const { candidate, serving = null } = record ?? {};
  if (!record || candidate?.generation !== identity.generation) return;
  // A restart has the generation of the release that it restarts.
  const isRestart = candidate.generation === serving?.generation;
  await step(() => restoreBefore(cluster, fence, record));
  if (!isRestart) {
    await step(() => untilServing(cluster, identity, record));
    await step(() => withdraw(cluster, fence, record));
    await step(() => untilWithdrawn(cluster, identity, candidate));
    await step(() => removeSecretsOf(cluster, fence, candidate));
  }
  const made = serving ? (serving.objects ?? record.made) : [];
  await step(() =>
    changeRecord(cluster, identity, (present) =>
      present?.candidate?.generation === candidate.generation
        ? { ...present, candidate: null, ...(made ? { made } : {}) }
        : null,
    ),
  );
}

async function restoreBefore(
  cluster: Cluster,
  fence: Fence,
  { serving, hostname, isStopped }: ServiceRecord,
): Promise<void> {
  if (serving) await applyRelease(cluster, fence, isStopped ? stopped(serving) : serving);
  else await removeRollout(cluster, fence, hostname);
}

/** Waits until the pods of the release before are ready, so that what leads to them finds some. After a while they get ready without that. */
async function untilServing(
  cluster: Cluster,
  identity: WorkloadIdentity,
  { serving, isStopped }: ServiceRecord,
): Promise<void> {
  if (!serving?.manifests?.length || isStopped) return;
  for (const end = Date.now() + SERVING_MS; Date.now() < end; await sleep(LOOK_MS)) {
    const pods = (await listPods(cluster, identity)).filter(isReady);
    if (pods.filter((pod) => generationOf(pod) === serving.generation).length >= leastOf(serving)) return;
  }
}

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
