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
import { asRuntimeError } from './errors.ts';
import type { FoundDeployment, Pod } from './kinds.ts';
import { LABEL, namespaceOf } from './labels.ts';
import { lastLinesOf } from './logs.ts';
import { tellOutside } from './outside.ts';
import { generationOf, instanceOf, isReady, listPods, troubleOf } from './pods.ts';
import { changeRecord, readRecord, requireNewest, type KeptRelease, type ServiceRecord } from './record.ts';
import { applyRelease, removeMade, removeOldSecrets, removeRollout, stopped } from './submit.ts';

/** Milliseconds between two looks at a rollout. */
const LOOK_MS = 400;
/** Milliseconds that the cluster may be away during a rollout, which goes on meanwhile. */
const AWAY_MS = 5 * 60_000;
/** Milliseconds that the pods of a candidate may take to end once it is taken back. */
const WITHDRAWN_MS = 15_000;
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
    if (failure.code === 'aborted' || failure.code === 'not_ready') await takeBack(cluster, identity);
    throw failure;
  }
  const record = await changeRecord(cluster, identity, (present) =>
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
  if (!record) return;
  await removeOldSecrets(cluster, identity, record.serving?.generation ?? identity.generation);
  await tellOutside(cluster, identity, record.serving?.objects ?? [], context);
}

async function waitForRollout(cluster: Cluster, { identity, data }: Handle, context: RuntimeContext): Promise<void> {
  const told = new Set<string>();
  let awaySince: number | null = null;
  for (;;) {
    context.signal.throwIfAborted();
    try {
      if (await look(cluster, identity, String(data['hostname']), (line) => tellOnce(line, told, context))) return;
      awaySince = null;
    } catch (error) {
      const failure = asRuntimeError(error);
      if (failure.code !== 'unreachable') throw failure;
      // The rollout goes on by itself; only its end is not seen.
      awaySince ??= Date.now();
      if (Date.now() - awaySince > AWAY_MS) throw failure;
      tellOnce(failure.message, told, context);
    }
    await sleep(LOOK_MS, undefined, { signal: context.signal });
  }
}

function tellOnce(line: string, told: Set<string>, context: RuntimeContext): void {
  if (told.has(line)) return;
  told.add(line);
  context.log(line);
}

/** Returns whether a rollout is complete. Throws RuntimeError `not_ready` once its time is over. */
async function look(
  cluster: Cluster,
  identity: WorkloadIdentity,
  name: string,
  tell: (line: string) => void,
): Promise<boolean> {
  const deployment = await find<FoundDeployment>(cluster, 'Deployment', namespaceOf(identity), name);
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
  const pods = (await listPods(cluster, identity)).filter((pod) => generationOf(pod) === present);
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

/** Takes a candidate back: the release before serves on, or nothing is left but volumes. */
async function takeBack(cluster: Cluster, identity: WorkloadIdentity): Promise<void> {
  let before: ServiceRecord | null = null;
  await changeRecord(cluster, identity, (present) => {
    before = present;
    return present?.candidate ? { ...present, candidate: null } : null;
  });
  const { serving, candidate, hostname, isStopped, made = [] } = (before ?? {}) as Partial<ServiceRecord>;
  if (!candidate || hostname === undefined) return;
  if (serving) await applyRelease(cluster, identity, isStopped ? stopped(serving) : serving);
  else {
    await removeRollout(cluster, identity, hostname);
    await removeMade(cluster, identity, made.filter(isOutside));
  }
  // A restart has the generation of the release that it restarts.
  if (candidate.generation !== serving?.generation) await untilWithdrawn(cluster, identity, candidate);
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
