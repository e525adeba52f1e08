import { anySignal } from '#kernel/lease-signal.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { readInstance } from '#runtimes/host/instance-record.ts';
import { instanceName, type InstanceKey, type Layout } from '#runtimes/host/layout.ts';
import { followShimLog, readShim, readShimLog, type ShimLogLine } from '#runtimes/tools/shim/index.ts';
import { LineQueue } from '#runtimes/tools/line-queue.ts';
import { earliestOf, isChosen, isWithin, later, type LogWindow } from '#runtimes/tools/log-window.ts';
import { LAST_LINES, type LogLine, type LogOptions } from '#runtimes/runtime.ts';

/** Interval in milliseconds at which a followed log looks for new instances. */
const LOOK_MS = 250;

/** Returns the last lines of the chosen instances of a service, oldest first. */
export function tailService(layout: Layout, serviceId: string, options: LogOptions): LogLine[] {
  const lines = chosenInstances(layout, serviceId, options).flatMap((at) => tailInstance(layout, at, options));
  return lines.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0)).slice(-options.tail);
}

const chosenInstances = (layout: Layout, serviceId: string, options: LogOptions): InstanceKey[] =>
  layout.instances(serviceId).filter((at) => isChosen(instanceName(at), options));

function tailInstance(layout: Layout, at: InstanceKey, options: LogOptions): LogLine[] {
  const directory = layout.instance(at);
  const window = options.previous ? endedRun(directory) : {};
  if (window === null) return [];
  const from = later(window.from, earliestOf(options));
  return readShimLog(directory, options.tail, { ...window, from }).map((line) => toLine(at, line));
}

/** Returns the part of an instance's log that its last ended run wrote; null if the instance never restarted. */
function endedRun(directory: string): LogWindow | null {
  const state = readShim(directory)?.state;
  const replaced = readInstance(directory)?.replaced?.times ?? 0;
  if (!state || state.restarts + replaced === 0) return null;
  const { startedAt, previousStartedAt } = state;
  if (state.state === 'backoff') return { from: startedAt ?? undefined };
  return { from: previousStartedAt ?? undefined, to: startedAt ?? undefined };
}

/** Returns the last lines of an instance, for an error. */
export const lastLinesOf = (layout: Layout, at: InstanceKey): LogLine[] =>
  readShimLog(layout.instance(at), LAST_LINES).map((line) => toLine(at, line));

/** Yields the last lines, then the new ones of the chosen instances, including later instances, until the signal is aborted. */
export async function* followService(layout: Layout, serviceId: string, options: LogOptions): AsyncGenerator<LogLine> {
  const known = new Set<string>();
  const end = new AbortController();
  const stop = anySignal([options.signal, end.signal]);
  const queue = new LineQueue(stop);
  const readers: Promise<void>[] = [];
  const join = (fromStart: boolean) => {
    for (const at of chosenInstances(layout, serviceId, options)) {
      if (known.has(instanceName(at))) continue;
      known.add(instanceName(at));
      readers.push(pump(layout, at, { fromStart, from: earliestOf(options) }, queue, stop));
    }
  };
  join(false);
  const look = lookForOthers(() => join(true), stop);
  try {
    yield* tailService(layout, serviceId, options);
    yield* queue.lines();
  } finally {
    end.abort();
    await Promise.all([look, ...readers]);
  }
}

async function lookForOthers(look: () => void, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await sleep(LOOK_MS, undefined, { signal }).catch((error: Error) => {
      if (error.name !== 'AbortError') throw error;
    });
    if (!signal.aborted) look();
  }
}

/** Forwards the lines of one instance until it is removed. */
async function pump(
  layout: Layout,
  at: InstanceKey,
  { fromStart, from }: { fromStart: boolean; from: string | undefined },
  queue: LineQueue,
  signal: AbortSignal,
): Promise<void> {
  const directory = layout.instance(at);
  try {
    for await (const line of followShimLog(directory, signal, fromStart)) {
      if (!isWithin(line.time, { from })) continue;
      queue.push(toLine(at, line));
      await queue.room();
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

const toLine = (at: InstanceKey, { time, stream, text }: ShimLogLine): LogLine => ({
  at: time,
  instance: instanceName(at),
  generation: at.generation,
  stream,
  text,
});
