import { anySignal } from '#kernel/lease-signal.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { instanceName, type InstanceKey, type Layout } from '#runtimes/host/layout.ts';
import { followShimLog, readShimLog, type ShimLogLine } from '#runtimes/tools/shim/index.ts';
import { LineQueue } from '#runtimes/tools/line-queue.ts';
import { LAST_LINES, type LogLine } from '#runtimes/runtime.ts';

/** Interval in milliseconds at which a followed log looks for new instances. */
const LOOK_MS = 250;

/** Returns the last lines of all instances of a service, oldest first. */
export function tailService(layout: Layout, serviceId: string, tail: number): LogLine[] {
  const lines = layout
    .instances(serviceId)
    .flatMap((at) => readShimLog(layout.instance(at), tail).map((line) => toLine(at, line)));
  return lines.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0)).slice(-tail);
}

/** Returns the last lines of an instance, for an error. */
export const lastLinesOf = (layout: Layout, at: InstanceKey): LogLine[] =>
  readShimLog(layout.instance(at), LAST_LINES).map((line) => toLine(at, line));

/** Yields the last lines, then the new ones of all instances, including later instances, until the signal is aborted. */
export async function* followService(
  layout: Layout,
  serviceId: string,
  tail: number,
  signal: AbortSignal,
): AsyncGenerator<LogLine> {
  const known = new Set<string>();
  const end = new AbortController();
  const stop = anySignal([signal, end.signal]);
  const queue = new LineQueue(stop);
  const readers: Promise<void>[] = [];
  const join = (fromStart: boolean) => {
    for (const at of layout.instances(serviceId)) {
      if (known.has(instanceName(at))) continue;
      known.add(instanceName(at));
      readers.push(pump(layout, at, fromStart, queue, stop));
    }
  };
  join(false);
  const look = lookForOthers(() => join(true), stop);
  try {
    yield* tailService(layout, serviceId, tail);
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
  fromStart: boolean,
  queue: LineQueue,
  signal: AbortSignal,
): Promise<void> {
  const directory = layout.instance(at);
  try {
    for await (const line of followShimLog(directory, signal, fromStart)) {
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
