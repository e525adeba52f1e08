import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { anySignal } from '#kernel/lease-signal.ts';
import { LineQueue } from '#runtimes/tools/line-queue.ts';
import { charactersOf, LastLines, LONGEST_LINE } from '#runtimes/tools/log-limits.ts';
import { earliestOf, isChosen, isWithin } from '#runtimes/tools/log-window.ts';
import type { Handle, LogLine, LogOptions } from '#runtimes/runtime.ts';
import { pathOf, type Cluster } from './cluster.ts';
import { ApiError } from './errors.ts';
import type { Pod } from './kinds.ts';
import { containerNameOf, generationOf, hasRestarted } from './pods.ts';
import { podsOf } from './pods-of.ts';

/** Milliseconds between two looks for pods that have started since. */
const LOOK_MS = 1000;
/** Milliseconds for the last lines of a pod that an error quotes. */
const LAST_LINES_MS = 10_000;

interface TimedLine extends LogLine {
  /** Time of the cluster in nanoseconds, always as long: orders lines, and marks the place to go on from. */
  stamp: string;
}

/** Yields lines of the pods, oldest first: the last `tail`, then with `follow` the new ones, also of new pods (`Runtime.logs`). */
export async function* readLogs(cluster: Cluster, handle: Handle, options: LogOptions): AsyncGenerator<LogLine> {
  const { tail, previous = false, signal } = options;
  const pods = await listChosen(cluster, handle, options);
  const most = { lines: tail, characters: charactersOf(pods.length) };
  const reading = { most, previous, earliest: earliestOf(options), signal };
  const read = await Promise.all(pods.map((pod) => readTail(cluster, pod, reading)));
  const lines = read.flat().toSorted((one, other) => (one.stamp < other.stamp ? -1 : 1));
  for (const line of lines.slice(-tail)) yield withoutStamp(line);
  if (!options.follow || previous) return;
  const told = new Map(
    pods.flatMap(({ metadata }, n) => read[n]!.slice(-1).map(({ stamp }) => [metadata.name, stamp])),
  );
  // A reader that leaves without an abort ends the readers of the pods as well.
  const left = new AbortController();
  const ended = anySignal([signal, left.signal]);
  const queue = new LineQueue(ended);
  const following = { told, queue, earliest: reading.earliest, signal: ended };
  followAll(cluster, () => listChosen(cluster, handle, options), following).catch((error: unknown) => {
    if (!ended.aborted) queue.fail(error);
  });
  try {
    yield* queue.lines();
  } finally {
    left.abort();
  }
}

const listChosen = async (cluster: Cluster, handle: Handle, options: LogOptions): Promise<Pod[]> =>
  (await podsOf(cluster, handle)).filter(({ metadata }) => isChosen(metadata.name, options));

const withoutStamp = ({ stamp: _stamp, ...line }: TimedLine): LogLine => line;

/** Returns the last lines of a pod; those of the run before where its container was started again. */
export async function lastLinesOf(cluster: Cluster, pod: Pod, count: number): Promise<LogLine[]> {
  const most = { lines: count, characters: charactersOf(1) };
  const reading = { most, previous: false, earliest: undefined, signal: AbortSignal.timeout(LAST_LINES_MS) };
  const present = await readTail(cluster, pod, reading);
  const isBefore = present.length === 0 && hasRestarted(pod);
  const lines = isBefore ? await readTail(cluster, pod, { ...reading, previous: true }) : present;
  return lines.map(withoutStamp);
}

interface Reading {
  most: { lines: number; characters: number };
  previous: boolean;
  /** Earliest time of wanted lines, as in `LogLine.at`; undefined without a limit. */
  earliest: string | undefined;
  signal: AbortSignal;
}

async function readTail(
  cluster: Cluster,
  pod: Pod,
  { most, previous, earliest, signal }: Reading,
): Promise<TimedLine[]> {
  const last = new LastLines<TimedLine>(most);
  const query = { tailLines: most.lines, previous, ...sinceOf(earliest) };
  for await (const line of linesOfPod(cluster, pod, query, signal)) last.add(line);
  return last.lines.filter(({ at }) => isWithin(at, { from: earliest }));
}

/** The cluster counts whole seconds: lines before that time are left out here. */
const sinceOf = (time: string | undefined): Record<string, string> =>
  time === undefined ? {} : { sinceTime: `${time.slice(0, 19)}Z` };

interface Following {
  /** Stamp of the last line of each pod that was told. */
  told: Map<string, string>;
  queue: LineQueue;
  earliest: string | undefined;
  signal: AbortSignal;
}

/** Follows the pods that there are, and those that start later, until the signal is aborted. */
async function followAll(cluster: Cluster, pods: () => Promise<Pod[]>, following: Following): Promise<void> {
  const followed = new Set<string>();
  for (;;) {
    for (const pod of await pods()) {
      const { name } = pod.metadata;
      if (followed.has(name)) continue;
      followed.add(name);
      followPod(cluster, pod, following)
        .catch((error: unknown) => {
          if (!following.signal.aborted) following.queue.fail(error);
        })
        .finally(() => followed.delete(name));
    }
    await sleep(LOOK_MS, undefined, { signal: following.signal });
  }
}

async function followPod(cluster: Cluster, pod: Pod, { told, queue, earliest, signal }: Following): Promise<void> {
  const { name } = pod.metadata;
  const query = { follow: true, ...sinceOf(told.get(name) ?? earliest) };
  for await (const line of linesOfPod(cluster, pod, query, signal)) {
    if (line.stamp <= (told.get(name) ?? '') || !isWithin(line.at, { from: earliest })) continue;
    told.set(name, line.stamp);
    queue.push(withoutStamp(line));
    await queue.room();
  }
}

/** Yields the lines of a pod; none where it has no log. */
export async function* linesOfPod(
  cluster: Cluster,
  pod: Pod,
  query: Record<string, string | number | boolean>,
  signal: AbortSignal,
): AsyncGenerator<TimedLine> {
  const stream = await open(cluster, pod, query, signal);
  if (!stream) return;
  for await (const text of linesOf(stream)) {
    const line = toLine(pod, text);
    // A node may say in its own words, without a time, why it cannot read a log: that is no line of the program.
    if (TIMED.test(line.at)) yield line;
  }
}

const TIMED = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** Opens the log of a pod; null where there is none yet, or no longer. */
async function open(
  { connection }: Cluster,
  pod: Pod,
  query: Record<string, string | number | boolean>,
  signal: AbortSignal,
): Promise<Readable | null> {
  const { name, namespace } = pod.metadata;
  try {
    return await connection.stream(`${pathOf('Pod', namespace, name)}/log`, {
      query: { container: containerNameOf(pod), timestamps: true, ...query },
      signal,
    });
  } catch (error) {
    // 400: its container has not started, or never ran before.
    if (error instanceof ApiError && (error.status === 404 || error.status === 400)) return null;
    throw error;
  }
}

async function* linesOf(stream: Readable): AsyncGenerator<string> {
  let rest = '';
  stream.setEncoding('utf8');
  for await (const part of stream as AsyncIterable<string>) {
    const lines = (rest + part).split('\n');
    rest = lines.pop()!.slice(0, LONGEST_LINE);
    for (const line of lines) yield line.slice(0, LONGEST_LINE);
  }
  if (rest !== '') yield rest;
}

/** Parses a line behind its time (`2026-01-02T03:04:05.678901234Z text`). The cluster does not tell both outputs apart. */
function toLine(pod: Pod, text: string): TimedLine {
  const space = text.indexOf(' ');
  const [seconds = '', fraction = ''] = text.slice(0, Math.max(0, space)).replace(/Z$/, '').split('.');
  const stamp = `${seconds}.${fraction.padEnd(9, '0')}`;
  return {
    at: `${stamp.slice(0, 23)}Z`,
    instance: pod.metadata.name,
    generation: generationOf(pod),
    stream: 'stdout',
    text: text.slice(space + 1),
    stamp,
  };
}
