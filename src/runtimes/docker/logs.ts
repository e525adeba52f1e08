import type { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { LineQueue } from '#runtimes/tools/line-queue.ts';
import type { Handle, LogLine } from '#runtimes/runtime.ts';
import { unless } from './errors.ts';
import { findInstance, listInstances } from './instances.ts';
import type { Instance } from './instances.ts';
import { LABEL } from './labels.ts';
import { LogDemultiplexer } from './log-frames.ts';
import type { RawLine } from './log-frames.ts';
import type { DockerNode } from './node.ts';

interface TimedLine extends LogLine {
  /** Time stamp of the engine, in nanoseconds: orders lines, and marks the position to follow from. */
  stamp: string;
}

/** Yields lines of all instances, oldest first: the last `tail`, then with `follow` the new ones, also of new instances. */
export async function* readLogs(
  node: DockerNode,
  handle: Handle,
  options: { tail: number; follow: boolean; signal: AbortSignal },
): AsyncGenerator<LogLine> {
  const instances = await listInstances(node, handle.identity);
  const read = await Promise.all(instances.map((instance) => readTail(node, instance, options.tail, options.signal)));
  const lines = read.flat().toSorted((one, other) => (one.stamp < other.stamp ? -1 : 1));
  for (const line of lines.slice(-options.tail)) yield withoutStamp(line);
  if (!options.follow) return;
  const told = new Map(
    read.flatMap((each, index) => (each.length > 0 ? [[instances[index]!.id, each.at(-1)!.stamp]] : [])),
  );
  yield* follow(node, handle.identity.serviceId, instances, told, options.signal);
}

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
  tail: number,
  abortSignal?: AbortSignal,
): Promise<TimedLine[]> {
  const call = node.engine
    .getContainer(instance.id)
    .logs({ follow: false, stdout: true, stderr: true, timestamps: true, tail, abortSignal });
  const output = await unless([404, 409], call);
  if (output === null) return [];
  const lines: RawLine[] = [];
  const frames = new LogDemultiplexer((line) => lines.push(line));
  frames.write(output);
  frames.end();
  return lines.map((line) => toLine(instance, line));
}

/** Returns the last lines of one instance as text, for error messages. */
export const lastLines = (node: DockerNode, instance: Instance, count: number): Promise<LogLine[]> =>
  readTail(node, instance, count);

/** Yields new lines of these instances and of those that start later, until the signal is aborted. */
async function* follow(
  node: DockerNode,
  serviceId: string,
  instances: Instance[],
  told: Map<string, string>,
  signal: AbortSignal,
): AsyncGenerator<LogLine> {
  const queue = new LineQueue(signal);
  const following = new Set<string>();
  const fail = (error: unknown) => queue.fail(error);
  const start = (instance: Instance) => {
    if (following.has(instance.id)) return;
    following.add(instance.id);
    followInstance(node, instance, told, queue, signal)
      .catch(fail)
      .finally(() => following.delete(instance.id));
  };
  const onStart = (id: string) => void startById(node, serviceId, id, start).catch(fail);
  // Not awaited: Podman answers only with the first event.
  watchStarts(node, serviceId, queue, signal, onStart).catch(fail);
  for (const instance of instances) start(instance);
  yield* queue.lines();
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

async function watchStarts(
  node: DockerNode,
  serviceId: string,
  queue: LineQueue,
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
  let rest = '';
  events.setEncoding('utf8');
  events.on('data', (part: string) => {
    const lines = (rest + part).split('\n');
    rest = lines.pop()!;
    for (const line of lines.filter((text) => text !== ''))
      onStart((JSON.parse(line) as { Actor: { ID: string } }).Actor.ID);
  });
  events.on('error', (error) => queue.fail(error));
  events.on('end', () => queue.fail(new Error('The container engine ended the stream of its events.')));
}

async function followInstance(
  node: DockerNode,
  instance: Instance,
  told: Map<string, string>,
  queue: LineQueue,
  signal: AbortSignal,
): Promise<void> {
  const after = told.get(instance.id);
  const stream = (await unless(
    [404, 409],
    node.engine.getContainer(instance.id).logs({
      follow: true,
      stdout: true,
      stderr: true,
      timestamps: true,
      ...(after === undefined ? {} : { since: Date.parse(`${after}Z`) / 1000 }),
      abortSignal: signal,
    } as never) as unknown as Promise<Readable>,
  )) as Readable | null;
  if (stream === null) return;
  // `since` is coarser than the stamps: lines already returned are skipped here.
  const frames = new LogDemultiplexer((line) => {
    if (line.stamp <= (told.get(instance.id) ?? '')) return;
    told.set(instance.id, line.stamp);
    queue.push(withoutStamp(toLine(instance, line)));
  });
  for await (const part of stream) {
    frames.write(part as Buffer);
    await queue.room();
  }
  frames.end();
}
