import { once } from 'node:events';
import { Readable, type Writable } from 'node:stream';
import type { WebSocket } from 'ws';
import { LastBytes, TOLD_BYTES } from '#runtimes/tools/last-bytes.ts';
import { RuntimeError, cancelled, type ExecEnd, type ExecRequest, type Handle } from '#runtimes/runtime.ts';
import { pathOf, type Cluster } from './cluster.ts';
import type { Pod } from './kinds.ts';
import { containerNameOf, isReady } from './pods.ts';
import { podsOf } from './pods-of.ts';

/** Protocols of the API server's sockets, the best first: the older one cannot end the standard input. */
const PROTOCOLS = ['v5.channel.k8s.io', 'v4.channel.k8s.io'];
const STDIN = 0;
const STDOUT = 1;
const STDERR = 2;
const END = 3;
const RESIZE = 4;
const CLOSE = 255;

/** Status object that ends a program. */
interface EndStatus {
  status?: string;
  message?: string;
  details?: { causes?: { reason?: string; message?: string }[] };
}

/** Runs a program in a pod that serves (`Runtime.exec`). */
export async function execInService(
  cluster: Cluster,
  handle: Handle,
  request: ExecRequest,
  signal: AbortSignal,
): Promise<ExecEnd> {
  if (signal.aborted) throw cancelled(signal.reason);
  const given = withVariables(request);
  const pods = (await podsOf(cluster, handle)).filter(isReady);
  const pod = request.instance ? pods.find(({ metadata }) => metadata.name === request.instance) : pods.at(-1);
  if (!pod)
    throw new RuntimeError(
      'failed',
      request.instance ? `No instance ${request.instance} serves.` : 'No instance serves.',
    );
  return execInContainer(cluster, pod, containerNameOf(pod), given, signal);
}

/** Runs a program without variables of its own in a container of a pod. */
export async function execInContainer(
  { connection }: Cluster,
  { metadata: { name, namespace } }: Pod,
  container: string,
  request: ExecRequest,
  signal: AbortSignal,
): Promise<ExecEnd> {
  if (signal.aborted) throw cancelled(signal.reason);
  const socket = await connection.socket(
    `${pathOf('Pod', namespace, name)}/exec`,
    queryOf(request, container),
    PROTOCOLS,
  );
  return carry(socket, request, signal);
}

/**
 * Reads lines `NAME=value` up to an empty one, then becomes the program, which reads the rest. Kubernetes gives programs in pods no
 * variables, and on the command line they would stand in the cluster's audit log. The text is the same for every program.
 */
const WITH_VARIABLES = 'while IFS= read -r line && [ -n "$line" ]; do export "$line"; done; exec "$@"';

/** Returns a request that gives its variables through the input. Throws for variables that cannot be given so. */
function withVariables(request: ExecRequest): ExecRequest {
  const { command, environment, stdin, terminal } = request;
  const all = Object.entries(environment);
  if (all.length === 0) return request;
  // A terminal shows its input.
  if (terminal || all.some(([name, value]) => !/^[A-Za-z_]\w*$/.test(name) || /[\n\0]/.test(value)))
    throw new RuntimeError(
      'refused',
      `Kubernetes gives no variables of several lines, and none on a terminal, to a program in a running pod (${all.map(([name]) => name).join(', ')}): set them on the service.`,
    );
  const lines = `${all.map(([name, value]) => `${name}=${value}\n`).join('')}\n`;
  const input = Readable.from(inOrder(Readable.from([Buffer.from(lines)]), stdin ?? Readable.from([])));
  return { ...request, command: ['sh', '-c', WITH_VARIABLES, 'sh', ...command], environment: {}, stdin: input };
}

async function* inOrder(...streams: Readable[]): AsyncGenerator<Buffer | string> {
  for (const stream of streams) yield* stream as AsyncIterable<Buffer | string>;
}

function queryOf({ command, stdin, terminal }: ExecRequest, container: string): URLSearchParams {
  const query = new URLSearchParams({ container, stdout: 'true' });
  for (const part of command) query.append('command', part);
  if (stdin) query.set('stdin', 'true');
  // A terminal has one output only.
  query.set(terminal ? 'tty' : 'stderr', 'true');
  return query;
}

async function carry(socket: WebSocket, request: ExecRequest, signal: AbortSignal): Promise<ExecEnd> {
  const stderr = new LastBytes(TOLD_BYTES);
  const { promise: ended, resolve, reject } = Promise.withResolvers<number>();
  const abort = () => reject(cancelled(signal.reason));
  signal.addEventListener('abort', abort, { once: true });
  let writing: Promise<unknown> = Promise.resolve();
  const hand = (part: Buffer, to: Writable | undefined) => {
    if (to === undefined) return stderr.push(part);
    if (to.write(part)) return;
    // Nothing more is read until the receiver has room.
    socket.pause();
    writing = once(to, 'drain', { signal }).then(
      () => socket.resume(),
      () => undefined,
    );
  };
  socket.on('message', (data: Buffer) => {
    const part = data.subarray(1);
    if (data[0] === STDOUT) hand(part, request.stdout);
    else if (data[0] === STDERR) hand(part, request.stderr);
    else if (data[0] === END) endOf(part.toString(), resolve, reject);
  });
  socket.on('error', (error) =>
    reject(new RuntimeError('failed', `The program cannot be started: ${error.message}.`, error)),
  );
  socket.on('close', () => reject(new RuntimeError('failed', 'The cluster ended the connection to the program.')));
  socket.once('open', () => {
    if (request.terminal) {
      const { columns: Width, rows: Height } = request.terminal;
      socket.send(frame(RESIZE, Buffer.from(JSON.stringify({ Width, Height }))));
    }
    if (request.stdin) sendInput(socket, request.stdin).catch(reject);
  });
  try {
    const exitCode = await ended;
    await writing;
    return { exitCode, stderr: stderr.text() };
  } catch (error) {
    if (signal.aborted) request.stdout.destroy();
    throw error;
  } finally {
    signal.removeEventListener('abort', abort);
    socket.on('error', () => undefined);
    socket.terminate();
  }
}

const frame = (channel: number, part: Buffer): Buffer => Buffer.concat([Buffer.from([channel]), part]);

async function sendInput(socket: WebSocket, stdin: Readable): Promise<void> {
  for await (const part of stdin as AsyncIterable<Buffer | string>) {
    if (socket.readyState !== socket.OPEN) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    socket.send(frame(STDIN, Buffer.from(part)), () => resolve());
    await promise;
  }
  if (socket.protocol === PROTOCOLS[0] && socket.readyState === socket.OPEN)
    socket.send(frame(CLOSE, Buffer.from([STDIN])));
}

/** Ends the wait with what the cluster says. Nothing is thrown: this runs in an event, where an error would end the process. */
function endOf(text: string, resolve: (exitCode: number) => void, reject: (error: Error) => void): void {
  let end: EndStatus;
  try {
    end = Object(JSON.parse(text)) as EndStatus;
  } catch (error) {
    return reject(new RuntimeError('failed', 'The cluster does not say how the program ended.', error));
  }
  if (end.status === 'Success') return resolve(0);
  const causes: unknown = end.details?.causes;
  const code = Array.isArray(causes) ? causes.find((cause) => Object(cause).reason === 'ExitCode')?.message : undefined;
  if (typeof code === 'string' && /^\d+$/.test(code)) return resolve(Number(code));
  reject(new RuntimeError('failed', `The program cannot be started: ${end.message ?? 'the cluster gives no reason'}.`));
}
