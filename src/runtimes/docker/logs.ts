import type { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { anySignal } from '#kernel/lease-signal.ts';
import { charactersOf, LastLines } from '#runtimes/tools/log-limits.ts';
import { LineQueue } from '#runtimes/tools/line-queue.ts';
import { earliestOf, isChosen, isWithin, later, type LogWindow } from '#runtimes/tools/log-window.ts';
import type { Handle, LogLine, LogOptions } from '#runtimes/runtime.ts';
import { findInstance, listInstances } from './instances.ts';
import type { Instance } from './instances.ts';
import { LABEL } from './labels.ts';
import { LogDemultiplexer, normalStamp } from './log-frames.ts';
import { openLog } from './open-log.ts';
import type { RawLine } from './log-frames.ts';
import type { DockerNode } from './node.ts';
import { listRunEnds, timeOf } from './run-ends.ts';

interface TimedLine extends LogLine {
  /** Time stamp of the engine, in nanoseconds: orders lines, and marks the position to follow from. */
  stamp: string;
}

/** Yields lines of the chosen instances, oldest first: the last `tail`, then with `follow` the new ones, also of new instances. */
export async function* readLogs(node: DockerNode, handle: Handle, options: LogOptions): AsyncGenerator<LogLine> {
  const all = await listInstances(node, handle.identity);
  const instances = all.filter(({ name }) => isChosen(name, options));
  const read = await readTails(node, instances, options);
  const lines = read.flat().toSorted((one, other) => (one.stamp < other.stamp ? -1 : 1));
  for (const line of lines.slice(-options.tail)) yield withoutStamp(line);
  if (!options.follow || options.previous) return;
  const told = new Map(
    read.flatMap((each, index) => (each.length > 0 ? [[instances[index]!.id, each.at(-1)!.stamp]] : [])),
  );
  yield* follow(node, handle.identity.serviceId, instances, told, options);
}

/** Reads the last lines of each instance, in the order of the instances. */
async function readTails(node: DockerNode, instances: Instance[], options: LogOptions): Promise<TimedLine[][]> {
  const { tail, signal } = options;
  const from = earliestStamp(options);
  const most = { lines: tail, characters: charactersOf(instances.length) };
  if (!options.previous)
    return Promise.all(instances.map((instance) => readTail(node, instance, most, { from }, signal)));
  const read: TimedLine[][] = [];
  // One after the other: the engine cannot count lines back from the end of a run, and sends all of them.
  for (const instance of instances) {
    const run = await endedRun(node, instance);
    const window = run && { ...run, from: later(run.from, from) };
    read.push(window === null ? [] : await readTail(node, instance, most, window, signal));
  }
  return read;
}

/**
 * Returns the part of a container's log that its last ended run wrote, in stamps; null if the container never restarted. Where the engine
 * has forgotten when the run before ended, the part begins with the log.
 */
async function endedRun(node: DockerNode, { id, state, restarts }: Instance): Promise<LogWindow | null> {
  if (timeOf(state.FinishedAt) === null) return null;
  const found = await listRunEnds(node, id, { since: 0, until: Date.parse(state.StartedAt) / 1000 });
  const ends = found.map(({ time }) => toStamp(time + 1));
  if (state.Restarting) return { from: ends.at(-1) };
  if (!state.Running && restarts === 0 && ends.length === 0) return null;
  // Engines note the start of a run when its process may have written already: ends are more exact.
  return { from: ends.at(-2), to: ends.at(-1) ?? normalStamp(state.StartedAt) };
}

const toStamp = (time: number): string => normalStamp(new Date(time).toISOString());

const earliestStamp = (options: LogOptions): string | undefined => {
  const earliest = earliestOf(options);
  return earliest === undefined ? undefined : normalStamp(earliest);
};

/** Returns a stamp as the engine takes it in queries, in seconds since 1970. */
const toSeconds = (stamp: string): number => Math.max(Date.parse(`${stamp}Z`), 0) / 1000;

const withoutStamp = ({ stamp: _stamp, ...line }: TimedLine): LogLine => line;

const toLine = (instance: Instance, line: RawLine): TimedLine => ({
  at: `${line.stamp.slice(0, 23)}Z`,
  instance: instance.name,
  generation: instance.generation,
  stream: line.stream,
  text: line.text,
  stamp: line.stamp,
});

async function readTail(
  node: DockerNode,
  instance: Instance,
  most: { lines: number; characters: number },
  window: LogWindow = {},
  signal?: AbortSignal,
): Promise<TimedLine[]> {
  const query = {
    ...(window.from === undefined ? {} : { since: toSeconds(window.from) }),
    // The engine counts `tail` from the end of the log, not from `until`.
    ...(window.to === undefined ? { tail: most.lines } : { until: toSeconds(window.to) + 0.001 }),
  };
  const output = await openLog(node.engine, instance.id, query, signal);
  if (output === null) return [];
  const last = new LastLines<RawLine>(most);
  const frames = new LogDemultiplexer((line) => {
    if (isWithin(line.stamp, window)) last.add(line);
  });
  for await (const part of output) frames.write(part as Buffer);
  frames.end();
  return last.lines.map((line) => toLine(instance, line));
}

/** Returns the last lines of one instance, for error messages and for what is kept of its log. */
export const lastLines = async (
  node: DockerNode,
  instance: Instance,
  count: number,
  signal?: AbortSignal,
): Promise<LogLine[]> =>
  (await readTail(node, instance, { lines: count, characters: charactersOf(1) }, {}, signal)).map(withoutStamp);

/** Yields new lines of these instances and of chosen ones that start later, until the signal is aborted. */
async function* follow(
  node: DockerNode,
  serviceId: string,
  instances: Instance[],
  told: Map<string, string>,
  options: LogOptions,
): AsyncGenerator<LogLine> {
  // A reader that leaves without an abort ends the readers of the instances as well.
  const left = new AbortController();
  const signal = anySignal([options.signal, left.signal]);
  const from = earliestStamp(options);
  const queue = new LineQueue(signal);
  const following = new Set<string>();
  const fail = (error: unknown) => queue.fail(error);
  const start = (instance: Instance) => {
    if (following.has(instance.id) || !isChosen(instance.name, options)) return;
    following.add(instance.id);
    followInstance(node, instance, { told, from }, queue, signal)
      .catch(fail)
      .finally(() => following.delete(instance.id));
  };
  const onStart = (id: string) => void startById(node, serviceId, id, start).catch(fail);
  // Not awaited: Podman answers only with the first event.
  watchStarts(node, serviceId, signal, onStart).catch(fail);
  for (const instance of instances) start(instance);
  try {
    yield* queue.lines();
  } finally {
    left.abort();
  }
}

async function startById(
  node: DockerNode,
  serviceId: string,
  id: string,
  start: (instance: Instance) => void,
): Promise<void> {
  const instance = await findInstance(node, id);
  if (instance?.labels[LABEL.service] === serviceId) start(instance);
}

/** Reports the starts of a service's containers until the signal is aborted. Rejects when the engine reports no more. */
async function watchStarts(
  node: DockerNode,
  serviceId: string,
  signal: AbortSignal,
  onStart: (id: string) => void,
): Promise<void> {
  const wanted = {
    label: [`${LABEL.service}=${serviceId}`],
    type: ['container'],
    event: ['start'],
  };
  const events = (await node.engine.getEvents({
    // Includes events of the last seconds: an instance may have started since the list was made.
    since: Math.floor(Date.now() / 1000) - 2,
    filters: wanted,
    abortSignal: signal,
  } as Docker.GetEventsOptions)) as Readable;
  await readEvents(events, onStart);
  throw new Error('The container engine ended the stream of its events.');
}

/** Characters of an event of the engine; a longer one is none. */
const LONGEST_EVENT = 1024 * 1024;

/** Reads the starts of containers to the end of the engine's events. Rejects where they are no events. */
export async function readEvents(events: AsyncIterable<Buffer | string>, onStart: (id: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const part of events) {
    const lines = (rest + (typeof part === 'string' ? part : decoder.decode(part, { stream: true }))).split('\n');
    rest = lines.pop()!;
    if (rest.length > LONGEST_EVENT) throw new Error('The container engine sent an event without an end.');
    for (const line of lines.filter((text) => text !== '')) {
      const { Actor: actor } = JSON.parse(line) as { Actor?: { ID?: unknown } };
      if (typeof actor?.ID === 'string') onStart(actor.ID);
    }
  }
}

async function followInstance(
  node: DockerNode,
  instance: Instance,
  { told, from }: { told: Map<string, string>; from: string | undefined },
  queue: LineQueue,
  signal: AbortSignal,
): Promise<void> {
  const after = told.get(instance.id) ?? from;
  const query = { follow: true, ...(after === undefined ? {} : { since: toSeconds(after) }) };
  const stream = await openLog(node.engine, instance.id, query, signal);
  if (stream === null) return;
  // `since` is coarser than the stamps: lines already returned are skipped here.
  const frames = new LogDemultiplexer((line) => {
    if (line.stamp <= (told.get(instance.id) ?? '') || !isWithin(line.stamp, { from })) return;
    told.set(instance.id, line.stamp);
    queue.push(withoutStamp(toLine(instance, line)));
  });
  for await (const part of stream) {
    frames.write(part as Buffer);
    await queue.room();
  }
  frames.end();
}
