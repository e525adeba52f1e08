import { uptime } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type Docker from 'dockerode';
import type { RuntimeContext, TaskEnd, TaskSpec } from '#runtimes/runtime.ts';
import { LOOPBACK } from './container-config.ts';
import { asRuntimeError, engineMessage, isBeingRemoved, mayPass, unless } from './errors.ts';
import type { DockerNode } from './node.ts';
import { explainExit } from './observe.ts';
import { timeOf } from './run-ends.ts';
import { TaskLog } from './task-log.ts';
import { markEnded, readEnded, readOutput } from './task-files.ts';
import type { EndedBy } from './task-files.ts';

type State = Docker.ContainerInspectInfo['State'];

/** Milliseconds between two checks of a command whose output can't be followed now. */
const LOOK_MS = 300;
/** Milliseconds that an engine may be away (an upgrade, a restart) before the caller gets an error. */
const AWAY_MS = 120_000;
/** Milliseconds of retries if an engine cannot read from the container of an ended command: the engine may be shutting down. */
const PASSING_MS = 30_000;
/** Maximum number of attempts to read the output of an ended command completely. */
const READINGS = 3;
/** Longest delay of a timer: 24 days. */
const LONGEST_MS = 2 ** 31 - 1;
/** Exit status that a starting engine records for containers that it finds ended: the real one is unknown. */
const UNKNOWN_STATUS = 255;

/** Returns whether the command of a container has ever begun. */
export const hasBegun = (state: State): boolean => timeOf(state.StartedAt) !== null;

const isOver = (state: State): boolean => !state.Running && !state.Paused && !state.Restarting;

/** Execution whose end is awaited. */
interface Waiting {
  node: DockerNode;
  spec: TaskSpec;
  container: Docker.Container;
  startedAt: string;
  log: TaskLog;
  context: RuntimeContext;
  /** Aborted when the execution's time is over. */
  overdue: AbortSignal;
  /** True if the engine was away during the execution. */
  wasAway: boolean;
}

/** Logs a running command's output and returns its end. Ends the command when its time is over or the signal is aborted. */
export async function awaitEnd(
  node: DockerNode,
  spec: TaskSpec,
  begun: Docker.ContainerInspectInfo,
  context: RuntimeContext,
): Promise<TaskEnd> {
  const container = node.engine.getContainer(begun.Id);
  const startedAt = timeOf(begun.State.StartedAt)!;
  const left = Date.parse(startedAt) + spec.timeoutSeconds * 1000 - Date.now();
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(), Math.min(Math.max(left, 0), LONGEST_MS));
  const log = new TaskLog(container, (text) => context.log(text));
  const waiting = { node, spec, container, startedAt, log, context, overdue: over.signal, wasAway: false };
  const stopping = new Stopping(waiting);
  over.signal.addEventListener('abort', () => stopping.begin('timeout'), { once: true });
  try {
    return await follow(waiting);
  } catch (error) {
    // After an abort the caller relies on the command's end, if it can be ended now.
    if (context.signal.aborted) await end(waiting, 'abort');
    throw error;
  } finally {
    clearTimeout(timer);
    await stopping.settled;
  }
}

/** Ends a command in the background; `follow` retries a failure. */
class Stopping {
  readonly #waiting: Waiting;
  settled: Promise<void> = Promise.resolve();

  constructor(waiting: Waiting) {
    this.#waiting = waiting;
  }

  begin(why: EndedBy): void {
    const { context, spec } = this.#waiting;
    context.log(`It runs for ${spec.timeoutSeconds} seconds: its time is over, it is ended.`);
    this.settled = end(this.#waiting, why).catch((error: unknown) => context.log(engineMessage(error)));
  }
}

async function end({ container, spec }: Waiting, why: EndedBy): Promise<void> {
  const state = await unless([404], container.inspect());
  if (!state || isOver(state.State)) return;
  await markEnded(container, why);
  await unless([304, 404], container.stop({ t: spec.gracePeriodSeconds }));
}

async function follow(waiting: Waiting): Promise<TaskEnd> {
  const { context, overdue } = waiting;
  for (let readings = 0; ;) {
    const inspected = await inspectPatiently(waiting);
    context.signal.throwIfAborted();
    if (!inspected) return lost(waiting.startedAt, new Date().toISOString());
    const over = isOver(inspected.State);
    const complete = await tellLines(waiting);
    context.signal.throwIfAborted();
    // Only output read after the command's end is complete: before, reading may have ended with the engine.
    if (over && (complete || ++readings === READINGS)) return endOf(waiting, inspected.State);
    if (over || complete) continue;
    await sleep(LOOK_MS, undefined, { signal: context.signal });
    if (overdue.aborted) await end(waiting, 'timeout').catch(() => undefined);
  }
}

/** Returns whether the output was read completely; `inspectPatiently` waits for an engine that is away. */
async function tellLines({ log, context }: Waiting): Promise<boolean> {
  try {
    await log.tell(context.signal);
    return true;
  } catch (error) {
    context.signal.throwIfAborted();
    if (asRuntimeError(error).code !== 'unreachable') context.log(`Its output cannot be read: ${engineMessage(error)}`);
    return false;
  }
}

/** Inspects the container; null if it is gone. Throws if the engine is away for too long. */
async function inspectPatiently(waiting: Waiting): Promise<Docker.ContainerInspectInfo | null> {
  const { container, context } = waiting;
  for (const end = Date.now() + AWAY_MS; ;) {
    try {
      return await unless([404], container.inspect());
    } catch (error) {
      if (asRuntimeError(error).code !== 'unreachable' || Date.now() > end) throw error;
      if (!waiting.wasAway) context.log('The container engine does not answer: it is waited for.');
      waiting.wasAway = true;
      await sleep(LOOK_MS, undefined, { signal: context.signal });
    }
  }
}

const lost = (startedAt: string, endedAt: string): TaskEnd => {
  return { reason: 'lost', exitCode: null, signal: null, startedAt, endedAt, output: null };
};

/**
 * Reads the end of a command from its container. The end is unknown if the container is being removed. An engine that is about to shut down
 * removes the container's files first and answers 500: it is asked again.
 */
async function endOf(waiting: Waiting, state: State): Promise<TaskEnd> {
  const { context, startedAt } = waiting;
  const endedAt = timeOf(state.FinishedAt) ?? startedAt;
  for (const deadline = Date.now() + PASSING_MS; ;) {
    try {
      return await readEnd(waiting, state, endedAt);
    } catch (error) {
      const isLast = Date.now() > deadline;
      if (isLast && isBeingRemoved(error)) return lost(startedAt, endedAt);
      if (isLast || !mayPass(error)) throw error;
    }
    await sleep(LOOK_MS, undefined, { signal: context.signal });
    if ((await inspectPatiently(waiting)) === null) return lost(startedAt, endedAt);
  }
}

async function readEnd(waiting: Waiting, state: State, endedAt: string): Promise<TaskEnd> {
  const { container, spec, startedAt, context } = waiting;
  const endedBy = await readEnded(container);
  if (endedBy === null && isUnknown(waiting, state)) return lost(startedAt, endedAt);
  const { signal } = explainExit(state.ExitCode, false);
  if (state.OOMKilled) context.log(`It needed more memory than its limit of ${spec.resources.memoryMib} MiB.`);
  const exitCode = signal !== null || endedBy !== null ? null : state.ExitCode;
  return {
    reason: endedBy === 'timeout' ? 'timeout' : 'exited',
    exitCode,
    signal: signal ?? (endedBy === null ? null : 'SIGTERM'),
    startedAt,
    endedAt,
    output: exitCode === 0 ? await readOutput(container, spec) : null,
  };
}

/** Returns whether the engine only assumed the status: the engine, or the whole machine, was down when the command ended. */
function isUnknown({ node, startedAt, wasAway }: Waiting, state: State): boolean {
  if (state.ExitCode !== UNKNOWN_STATUS) return false;
  const onThisMachine = node.publishAddress === LOOPBACK;
  return wasAway || (onThisMachine && Date.parse(startedAt) < Date.now() - uptime() * 1000);
}
