import { once } from 'node:events';
import { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import { anySignal } from '#kernel/lease-signal.ts';
import { RuntimeError, type Handle, type InstanceEndpoints, type InstancePort } from '#runtimes/runtime.ts';
import { pathOf, type Cluster } from './cluster.ts';
import type { Pod } from './kinds.ts';
import { isReady } from './pods.ts';
import { podsOf } from './pods-of.ts';

/** Protocol of the API server's sockets for ports: each message begins with the number of its channel. */
const PROTOCOL = 'v4.channel.k8s.io';
const DATA = 0;
const ERROR = 1;
/** Bytes of the port's number, with which the first message of each channel begins. */
const HEADER = 2;
/** Milliseconds that the cluster may take to open a connection. */
const OPEN_MS = 10_000;

interface DeclaredPort {
  containerPort: number;
  protocol?: string;
}

/** Returns the TCP ports of each instance that serves (`Runtime.endpoints`). Their addresses are reached from within the cluster only. */
export async function endpointsOfService(cluster: Cluster, handle: Handle): Promise<InstanceEndpoints[]> {
  const pods = (await podsOf(cluster, handle)).filter(isReady);
  return pods.map((pod) => ({
    instance: pod.metadata.name,
    ports: portsOf(pod).map((port) => ({ internalPort: port, address: pod.status?.podIP ?? '', port })),
  }));
}

function portsOf({ spec }: Pod): number[] {
  const containers = (spec['containers'] ?? []) as { ports?: DeclaredPort[] }[];
  const declared = containers.flatMap(({ ports = [] }) => ports);
  return declared.filter(({ protocol = 'TCP' }) => protocol === 'TCP').map(({ containerPort }) => containerPort);
}

/** Opens a connection to a port of an instance through the API server (`Runtime.openPort`). */
export async function openPort(
  cluster: Cluster,
  handle: Handle,
  { instance, port }: InstancePort,
  signal: AbortSignal,
): Promise<Duplex> {
  const pod = (await podsOf(cluster, handle)).find(({ metadata }) => metadata.name === instance);
  if (!pod) throw new RuntimeError('failed', `No instance ${instance} serves.`);
  const path = `${pathOf('Pod', pod.metadata.namespace, pod.metadata.name)}/portforward`;
  const socket = await cluster.connection.socket(path, new URLSearchParams({ ports: String(port) }), [PROTOCOL]);
  const stream = new PortStream(socket);
  try {
    await once(socket, 'open', { signal: anySignal([signal, AbortSignal.timeout(OPEN_MS)]) });
    return stream;
  } catch (error) {
    stream.destroy();
    const why = error instanceof Error ? error.message : String(error);
    throw new RuntimeError('failed', `The cluster opens no connection to port ${port} of ${instance}: ${why}.`, error);
  }
}

/** Connection over a socket of the API server. It has no halves: its end is that of both directions. */
class PortStream extends Duplex {
  readonly #socket: WebSocket;
  /** Bytes of the header that are still to come, for each channel. */
  readonly #headers = new Map([
    [DATA, HEADER],
    [ERROR, HEADER],
  ]);

  constructor(socket: WebSocket) {
    super({ allowHalfOpen: false });
    this.#socket = socket;
    // Whoever opens or reads the stream is told; between both, or after both, an error must not end the process.
    this.on('error', () => undefined);
    socket.on('message', (message: Buffer) => this.#take(message));
    socket.on('error', (error) => this.destroy(error));
    socket.on('close', () => this.push(null));
  }

  #take(message: Buffer): void {
    const channel = message[0]!;
    const left = this.#headers.get(channel);
    if (left === undefined) return;
    const part = message.subarray(1);
    const skipped = Math.min(left, part.length);
    this.#headers.set(channel, left - skipped);
    const rest = part.subarray(skipped);
    if (rest.length === 0) return;
    if (channel === ERROR) this.destroy(new Error(rest.toString().slice(0, 1000)));
    // Nothing more is read until the receiver has room.
    else if (!this.push(rest)) this.#socket.pause();
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _write(part: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.send(Buffer.concat([Buffer.from([DATA]), part]), done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.terminate();
    done(error);
  }
}
