import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { LineQueue } from '#runtimes/tools/line-queue.ts';
import type { Handle, LogLine } from '#runtimes/runtime.ts';
import { pathOf, type Cluster } from './cluster.ts';
import { ApiError } from './errors.ts';
import type { Pod } from './kinds.ts';
import { CONTAINER } from './objects.ts';
import { generationOf, hasRestarted, listPods } from './pods.ts';

/** Milliseconds between two looks for pods that have started since. */
const LOOK_MS = 1000;
/** Longest line; what is longer is cut, so that a program that writes none does not fill the memory. */
const MOST_CHARACTERS = 64 * 1024;

interface TimedLine extends LogLine {
  /** Time of the cluster in nanoseconds, always as long: orders lines, and marks the place to go on from. */
  stamp: string;
}

/** Yields lines of all pods, oldest first: the last `tail`, then with `follow` the new ones, also of new pods. */
export async function* readLogs(
  cluster: Cluster,
  handle: Handle,
  options: { tail: number; follow: boolean; signal: AbortSignal },
): AsyncGenerator<LogLine> {
  const pods = await listPods(cluster, handle.identity);
  const read = await Promise.all(pods.map((pod) => readTail(cluster, pod, options.tail, false, options.signal)));
  const lines = read.flat().toSorted((one, other) => (one.stamp < other.stamp ? -1 : 1));
  for (const line of lines.slice(-options.tail)) yield withoutStamp(line);
  if (!options.follow) return;
  const told = new Map(
    pods.flatMap(({ metadata }, n) => read[n]!.slice(-1).map(({ stamp }) => [metadata.name, stamp])),
  );
  const queue = new LineQueue(options.signal);
  followAll(cluster, handle, told, queue, options.signal).catch((error: unknown) => {
    if (!options.signal.aborted) queue.fail(error);
  });
  yield* queue.lines();
}

const withoutStamp = ({ stamp: _stamp, ...line }: TimedLine): LogLine => line;

/** Returns the last lines of a pod; those of the run before where its container was started again. */
export async function lastLinesOf(cluster: Cluster, pod: Pod, count: number): Promise<LogLine[]> {
  const signal = AbortSignal.timeout(10_000);
  const present = await readTail(cluster, pod, count, false, signal);
  const lines = present.length === 0 && hasRestarted(pod) ? await readTail(cluster, pod, count, true, signal) : present;
  return lines.map(withoutStamp);
}

async function readTail(
  cluster: Cluster,
  pod: Pod,
  tail: number,
  previous: boolean,
  signal: AbortSignal,
): Promise<TimedLine[]> {
  const stream = await open(cluster, pod, { tailLines: tail, previous }, signal);
  const lines: TimedLine[] = [];
  if (stream) for await (const text of linesOf(stream)) lines.push(toLine(pod, text));
  return lines;
}

/** Follows the pods that there are, and those that start later, until the signal is aborted. */
async function followAll(
  cluster: Cluster,
  handle: Handle,
  told: Map<string, string>,
  queue: LineQueue,
  signal: AbortSignal,
): Promise<void> {
  const following = new Set<string>();
  for (;;) {
    for (const pod of await listPods(cluster, handle.identity)) {
      const { name } = pod.metadata;
      if (following.has(name)) continue;
      following.add(name);
      followPod(cluster, pod, told, queue, signal)
        .catch((error: unknown) => {
          if (!signal.aborted) queue.fail(error);
        })
        .finally(() => following.delete(name));
    }
    await sleep(LOOK_MS, undefined, { signal });
  }
}

async function followPod(
  cluster: Cluster,
  pod: Pod,
  told: Map<string, string>,
  queue: LineQueue,
  signal: AbortSignal,
): Promise<void> {
  const { name } = pod.metadata;
  const after = told.get(name);
  const query = { follow: true, ...(after !== undefined && { sinceTime: `${after.slice(0, 19)}Z` }) };
  const stream = await open(cluster, pod, query, signal);
  if (!stream) return;
  for await (const text of linesOf(stream)) {
    const line = toLine(pod, text);
    // `sinceTime` counts whole seconds: lines already returned are skipped here.
    if (line.stamp <= (told.get(name) ?? '')) continue;
    told.set(name, line.stamp);
    queue.push(withoutStamp(line));
    await queue.room();
  }
}

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
      query: { container: CONTAINER, timestamps: true, ...query },
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
    rest = lines.pop()!.slice(0, MOST_CHARACTERS);
    for (const line of lines) yield line.slice(0, MOST_CHARACTERS);
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
