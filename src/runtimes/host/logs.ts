import { statSync } from 'node:fs';
import { anySignal } from '#kernel/lease-signal.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { readInstance } from '#runtimes/host/instance-record.ts';
import { instanceName, type InstanceKey, type Layout } from '#runtimes/host/layout.ts';
import {
  endOfLog,
  followShimLog,
  readShim,
  readShimLog,
  type LogEnd,
  type ShimLogLine,
} from '#runtimes/tools/shim/index.ts';
import type { EndedInstance } from '#runtimes/tools/packed-log.ts';
import { charactersOf } from '#runtimes/tools/log-limits.ts';
import { LineQueue } from '#runtimes/tools/line-queue.ts';
import { earliestOf, isChosen, isWithin, later, type LogWindow } from '#runtimes/tools/log-window.ts';
import { LAST_LINES, type LogLine, type LogOptions } from '#runtimes/runtime.ts';

/** Interval in milliseconds at which a followed log looks for new instances. */
const LOOK_MS = 250;

/** Returns the last lines of the chosen instances of a service, oldest first. */
export function tailService(layout: Layout, serviceId: string, options: LogOptions): Promise<LogLine[]> {
  const instances = chosenInstances(layout, serviceId, options).map((at) => ({ at, end: null }));
  return tailInstances(layout, instances, options);
}

/** Instance and the end of its log up to which lines are read; null for the present one. */
interface Tailed {
  at: InstanceKey;
  end: LogEnd | null;
}

async function tailInstances(layout: Layout, instances: readonly Tailed[], options: LogOptions): Promise<LogLine[]> {
  const most = charactersOf(instances.length);
  const lines: LogLine[] = [];
  // One after the other: the lines of all of them are what the memory holds anyway, and no more files are open.
  for (const instance of instances)
    for (const line of await tailInstance(layout, instance, options, most)) lines.push(line);
  return lines.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0)).slice(-options.tail);
}

const chosenInstances = (layout: Layout, serviceId: string, options: LogOptions): InstanceKey[] =>
  layout.instances(serviceId).filter((at) => isChosen(instanceName(at), options));

async function tailInstance(
  layout: Layout,
  { at, end }: Tailed,
  options: LogOptions,
  most: number,
): Promise<LogLine[]> {
  const directory = layout.instance(at);
  const window = options.previous ? endedRun(directory) : {};
  if (window === null) return [];
  const from = later(window.from, earliestOf(options));
  const lines = await readShimLog(directory, options.tail, { ...window, from }, end, most);
  return lines.map((line) => toLine(at, line));
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

/** Returns the last lines of an instance, for an error or for what is kept of its log. */
export const lastLinesOf = async (layout: Layout, at: InstanceKey, count = LAST_LINES): Promise<LogLine[]> =>
  (await readShimLog(layout.instance(at), count)).map((line) => toLine(at, line));

/** Returns an instance as its log is kept. The folder tells it from an earlier instance of the same name. */
export function endedInstance(layout: Layout, at: InstanceKey): EndedInstance {
  const directory = layout.instance(at);
  const made = statSync(directory, { throwIfNoEntry: false });
  return {
    serviceId: at.serviceId,
    name: instanceName(at),
    generation: at.generation,
    key: made ? `${made.ino}-${Math.floor(made.birthtimeMs)}` : 'gone',
    lastRunFrom: readShim(directory)?.state.startedAt ?? null,
  };
}

/** Yields the last lines, then the new ones of the chosen instances, including later instances, until the signal is aborted. */
export async function* followService(layout: Layout, serviceId: string, options: LogOptions): AsyncGenerator<LogLine> {
  const known = new Set<string>();
  const end = new AbortController();
  const stop = anySignal([options.signal, end.signal]);
  const queue = new LineQueue(stop);
  const readers: Promise<void>[] = [];
  // Nobody awaits the readers before the end: an error without a handler would end the process.
  const fail = (error: unknown) => queue.fail(error);
  const follow = (at: InstanceKey, end: LogEnd | null) => {
    known.add(instanceName(at));
    readers.push(pump(layout, at, { end, from: earliestOf(options) }, queue, stop).catch(fail));
  };
  // Read up to an end and followed from it: an instance may write at any moment in between.
  const present = chosenInstances(layout, serviceId, options).map((at) => ({
    at,
    end: endOfLog(layout.instance(at)),
  }));
  const last = await tailInstances(
    layout,
    present.filter(({ end }) => end !== null),
    options,
  );
  for (const { at, end } of present) follow(at, end);
  const look = lookForOthers(() => {
    for (const at of chosenInstances(layout, serviceId, options)) if (!known.has(instanceName(at))) follow(at, null);
  }, stop).catch(fail);
  try {
    yield* last;
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
  { end, from }: { end: LogEnd | null; from: string | undefined },
  queue: LineQueue,
  signal: AbortSignal,
): Promise<void> {
  const directory = layout.instance(at);
  try {
    for await (const line of followShimLog(directory, signal, end)) {
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
