import { setTimeout as sleep } from 'node:timers/promises';
import { anySignal } from '#kernel/lease-signal.ts';
import { maskOf } from '#kernel/secrets-mask.ts';
import { RuntimeError, cancelled, type RuntimeContext, type TaskEnd, type TaskSpec } from '#runtimes/runtime.ts';
import { find, list, type Cluster } from './cluster.ts';
import type { Ended, Job, Pod } from './kinds.ts';
import { namespaceOf } from './labels.ts';
import { Patience } from './patience.ts';
import { tellOnce } from './rollout.ts';
import { containerOf, exitOf } from './pods.ts';
import { endedBefore, hasKeeper, readKept } from './task-keeper.ts';
import { outputOf } from './task-output.ts';
import { TaskLog } from './task-log.ts';
import { endTask } from './task-stop.ts';
import { StartWatch } from './task-start.ts';
import { endedBy, jobName, ofTask } from './task-objects.ts';

/** Milliseconds between two looks at a command that has not started or is being ended. */
const LOOK_MS = 400;
/** Milliseconds between two looks at a running command; the end of its log is looked at at once. */
const RUNNING_MS = 5000;
/** Milliseconds beyond its grace period after which a pod that is being deleted is lost with its node. */
const LOST_MS = 60_000;
/** Number of attempts to read the output of an ended command completely, and milliseconds between them. */
const READINGS = 5;
const READING_MS = 1000;

/** Execution whose end is awaited. */
interface Waiting {
  cluster: Cluster;
  spec: TaskSpec;
  context: RuntimeContext;
  log: TaskLog;
  patience: Patience;
  start: StartWatch;
  /** Time at which the command began, as far as it was seen. */
  startedAt: string | null;
  /** Time in milliseconds at which the pod was first seen under deletion. */
  deletionSeen: number | null;
  told: Set<string>;
}

/** Job and pod of an execution. */
interface Seen {
  job: Job | null;
  pod: Pod | null;
}

/** Logs a command's output and returns its end. Ends the command when its time is over or the signal is aborted. */
export async function awaitEnd(cluster: Cluster, spec: TaskSpec, job: Job, context: RuntimeContext): Promise<TaskEnd> {
  const told = new Set<string>();
  const tell = (line: string) => tellOnce(line, told, context);
  const waiting: Waiting = {
    cluster,
    spec,
    context,
    log: new TaskLog(cluster, (text) => context.log(text)),
    patience: new Patience(tell),
    start: new StartWatch(cluster, job, context),
    startedAt: null,
    deletionSeen: null,
    told,
  };
  try {
    return await follow(waiting);
  } catch (error) {
    if (!context.signal.aborted) throw error;
    // The caller relies on the command's end.
    await abort(waiting);
    throw cancelled(context.signal.reason);
  }
}

const look = async ({ cluster, spec }: Waiting): Promise<Seen> => {
  const namespace = namespaceOf(spec.identity);
  const [job, pods] = await Promise.all([
    find<Job>(cluster, 'Job', namespace, jobName(spec)),
    list<Pod>(cluster, 'Pod', namespace, ofTask(spec)),
  ]);
  return { job, pod: pods.at(-1) ?? null };
};

async function follow(waiting: Waiting): Promise<TaskEnd> {
  const { context, patience } = waiting;
  const following = new Following(waiting);
  try {
    for (;;) {
      context.signal.throwIfAborted();
      const seen = await patience.ask(() => look(waiting));
      context.signal.throwIfAborted();
      const end = seen && (await patience.ask(() => judge(waiting, seen, following)));
      if (end) return end;
      await following.pause(pauseOf(waiting, seen?.pod ?? null));
    }
  } finally {
    await following.stop();
  }
}

/** Returns the end of a command that is over; null for one that goes on, which is ended where it must be. */
async function judge(waiting: Waiting, { job, pod }: Seen, following: Following): Promise<TaskEnd | null> {
  const { cluster, spec, context, start } = waiting;
  if (!job) return lost(waiting);
  const why = endedBy(job);
  if (pod && isOver(pod)) {
    await following.stop();
    await readRest(waiting, pod);
    return endOf(waiting, job, pod);
  }
  const running = pod && containerOf(pod)?.state?.running;
  if (pod && running) {
    waiting.startedAt = timeOf(running.startedAt);
    following.begin(pod);
    if (why === null && isOverdue(waiting)) {
      tellOnce(`It runs for ${spec.timeoutSeconds} seconds: its time is over, it is ended.`, waiting.told, context);
      await endTask(cluster, job, pod, 'timeout');
    } else if (why !== null) await endTask(cluster, job, pod, why);
    return isLostWithNode(waiting, pod) ? lost(waiting) : null;
  }
  if (!pod && (isFinished(job) || why !== null)) return endWithoutPod(waiting, job);
  if (pod?.metadata.deletionTimestamp) return isLostWithNode(waiting, pod) ? lost(waiting) : null;
  if (why === null) await start.look(job, pod);
  return null;
}

/** Returns whether the command of a pod is over: it ended, or the cluster has given the pod up. */
const isOver = (pod: Pod): boolean =>
  containerOf(pod)?.state?.terminated !== undefined ||
  pod.status?.phase === 'Failed' ||
  pod.status?.phase === 'Succeeded';

const isFinished = ({ status }: Job): boolean =>
  status?.conditions?.some(({ type, status: is }) => (type === 'Failed' || type === 'Complete') && is === 'True') ??
  false;

const timeOf = (time: string): string => new Date(time).toISOString();

const overdueAt = ({ startedAt, spec }: Waiting): number =>
  startedAt === null ? Infinity : Date.parse(startedAt) + spec.timeoutSeconds * 1000;

const isOverdue = (waiting: Waiting): boolean => Date.now() >= overdueAt(waiting);

/** Returns the milliseconds until the next look. */
function pauseOf(waiting: Waiting, pod: Pod | null): number {
  const left = overdueAt(waiting) - Date.now();
  const isQuiet = pod !== null && containerOf(pod)?.state?.running && !pod.metadata.deletionTimestamp && left > 0;
  return isQuiet ? Math.min(RUNNING_MS, left) : LOOK_MS;
}

/** Returns whether a pod under deletion is not ended in its time: its node does not answer. */
function isLostWithNode(waiting: Waiting, pod: Pod): boolean {
  const { spec, context, told } = waiting;
  if (!pod.metadata.deletionTimestamp) return false;
  const why = pod.status?.conditions?.find(({ type }) => type === 'DisruptionTarget')?.message;
  tellOnce(`The cluster removes its pod${why ? `: ${why}` : '.'}`, told, context);
  waiting.deletionSeen ??= Date.now();
  if (Date.now() - waiting.deletionSeen < spec.gracePeriodSeconds * 1000 + LOST_MS) return false;
  context.log(`Its node ${pod.spec.nodeName ?? ''} does not end it: what became of it cannot be known.`);
  return true;
}

const lost = ({ startedAt }: Waiting): TaskEnd => {
  const now = new Date().toISOString();
  return { reason: 'lost', exitCode: null, signal: null, startedAt: startedAt ?? now, endedAt: now, output: null };
};

/** Returns the end of a command whose pod is gone. */
function endWithoutPod(waiting: Waiting, job: Job): TaskEnd {
  const why = endedBy(job);
  if (why === 'start') throw new RuntimeError('failed', 'The command could not be started in time.');
  const end = { ...lost(waiting), startedAt: waiting.startedAt ?? timeOf(job.metadata.creationTimestamp!) };
  if (why === null) return end;
  const changed = job.status?.conditions
    ?.map(({ lastTransitionTime }) => lastTransitionTime ?? '')
    .toSorted()
    .at(-1);
  const endedAt = changed ? timeOf(changed) : end.endedAt;
  return { ...end, reason: why === 'timeout' ? 'timeout' : 'exited', signal: 'SIGTERM', endedAt };
}

/** Reasons of a container whose program never began. */
const NOT_STARTED = ['StartError', 'ContainerCannotRun'];

async function endOf(waiting: Waiting, job: Job, pod: Pod): Promise<TaskEnd> {
  const { cluster, spec, context } = waiting;
  const { reason, message } = pod.status ?? {};
  const container = containerOf(pod);
  const ended = container?.state?.terminated;
  const mask = maskOf(spec.secrets);
  if (!ended) {
    const text = [reason, message].filter(Boolean).join(': ') || 'the cluster gives no reason';
    if (!container?.state?.running) throw new RuntimeError('failed', mask(`The command cannot be started: ${text}.`));
    context.log(`The cluster gave its pod up: ${text}.`);
    return lost(waiting);
  }
  if (NOT_STARTED.includes(ended.reason ?? ''))
    throw new RuntimeError('failed', mask(`The command cannot be started: ${ended.message ?? ended.reason}`));
  if (reason !== undefined && reason !== 'DeadlineExceeded') context.log(`${reason}: ${message ?? ''}`);
  const times = { startedAt: timeOf(ended.startedAt!), endedAt: timeOf(ended.finishedAt!) };
  if (isUnknown(ended)) return { ...lost(waiting), ...times };
  if (ended.reason === 'OOMKilled')
    context.log(`It needed more memory than its limit of ${spec.resources.memoryMib} MiB.`);
  const isOverdue = reason === 'DeadlineExceeded' && !endedBefore(pod, ended);
  const why = endedBy(job) ?? (isOverdue ? 'timeout' : null);
  const { code, signal } = exitOf(ended);
  const isEnded = why !== null || (code === 0 && isCutOff(pod, ended));
  const exitCode = isEnded ? null : code;
  return {
    reason: why === 'timeout' ? 'timeout' : 'exited',
    exitCode,
    signal: signal ?? (isEnded ? 'SIGTERM' : null),
    ...times,
    output: exitCode === 0 ? await readOutput(cluster, spec, pod, ended, context) : null,
  };
}

const readOutput = async (cluster: Cluster, spec: TaskSpec, pod: Pod, ended: Ended, { signal }: RuntimeContext) =>
  hasKeeper(pod) ? readKept(cluster, spec, pod, signal) : outputOf(spec, pod, ended);

/** Returns whether the node only assumed the end: it was started anew, and the container was gone. */
const isUnknown = ({ reason, exitCode }: Ended): boolean =>
  reason === 'ContainerStatusUnknown' || (reason === 'Unknown' && exitCode === 255);

/** Returns whether the cluster had asked the command to end before it ended: its status 0 is then no success. */
function isCutOff(pod: Pod, ended: Ended): boolean {
  const { metadata, status } = pod;
  if (endedBefore(pod, ended)) return false;
  if (status?.phase === 'Failed') return true;
  if (metadata.deletionTimestamp === undefined) return false;
  const asked = Date.parse(metadata.deletionTimestamp) - (metadata.deletionGracePeriodSeconds ?? 0) * 1000;
  return Date.parse(ended.finishedAt!) >= asked;
}

/** Reads what a command wrote that has ended, to its end. */
async function readRest({ log, context }: Waiting, pod: Pod): Promise<void> {
  for (let reading = 1; ; reading++) {
    try {
      return await log.read(pod, false, context.signal);
    } catch (error) {
      context.signal.throwIfAborted();
      if (reading === READINGS) {
        context.log(`Its output cannot be read: ${error instanceof Error ? error.message : String(error)}`);
        return;
      }
      await sleep(READING_MS, undefined, { signal: context.signal });
    }
  }
}

/** Ends a cancelled command, and waits for its end no longer than it may take. */
async function abort(waiting: Waiting): Promise<void> {
  const { cluster, spec, patience } = waiting;
  for (const late = Date.now() + spec.gracePeriodSeconds * 1000 + LOST_MS; Date.now() < late; await sleep(LOOK_MS)) {
    const seen = await patience.ask(() => look(waiting));
    if (!seen) continue;
    const { job, pod } = seen;
    if (!job || (pod && isOver(pod)) || (!pod && (isFinished(job) || endedBy(job) !== null))) return;
    await patience.ask(() => endTask(cluster, job, pod, endedBy(job) ?? 'abort'));
  }
}

/** Reading of a running command's log beside the looks at its pod. */
class Following {
  readonly #waiting: Waiting;
  #reading: { ended: Promise<void>; abort: AbortController } | null = null;

  constructor(waiting: Waiting) {
    this.#waiting = waiting;
  }

  /** Reads the log unless that is under way. It breaks off with the API server, and is then begun again by the next look. */
  begin(pod: Pod): void {
    if (this.#reading) return;
    const { log, context } = this.#waiting;
    const abort = new AbortController();
    const signal = anySignal([abort.signal, context.signal]);
    const ended = log.read(pod, true, signal).then(
      () => undefined,
      // What is left is read by the next reading, whose failure is told.
      () => undefined,
    );
    const reading = { ended, abort };
    this.#reading = reading;
    void ended.then(() => {
      if (this.#reading === reading) this.#reading = null;
    });
  }

  /** Waits, but not beyond the end of the log. */
  async pause(milliseconds: number): Promise<void> {
    const { context } = this.#waiting;
    const over = new AbortController();
    const signal = anySignal([over.signal, context.signal]);
    const waits = sleep(milliseconds, undefined, { signal }).catch(() => undefined);
    // The cluster tells that a pod is over a moment after the end of its log.
    await Promise.race([waits, ...(this.#reading ? [this.#reading.ended.then(() => sleep(LOOK_MS))] : [])]);
    over.abort();
  }

  async stop(): Promise<void> {
    const reading = this.#reading;
    reading?.abort.abort();
    await reading?.ended;
  }
}
