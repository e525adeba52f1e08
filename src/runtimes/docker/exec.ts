import type Docker from 'dockerode';
import type { Duplex, Writable } from 'node:stream';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { LastBytes, TOLD_BYTES } from '#runtimes/tools/last-bytes.ts';
import { RuntimeError, type ExecEnd, type ExecRequest, type Handle } from '#runtimes/runtime.ts';
import { engineMessage } from './errors.ts';
import { endProgram } from './exec-end.ts';
import { FrameReader } from './frames.ts';
import { listInstances } from './instances.ts';
import type { DockerNode } from './node.ts';

/** Runs a program in an instance that serves (`Runtime.exec`). */
export async function execInService(
  node: DockerNode,
  handle: Handle,
  request: ExecRequest,
  signal: AbortSignal,
): Promise<ExecEnd> {
  signal.throwIfAborted();
  const instances = await listInstances(node, handle.identity);
  const instance = instances.findLast(
    (one) =>
      one.state.Running &&
      !one.state.Restarting &&
      one.named &&
      (request.instance === undefined || one.name === request.instance),
  );
  if (!instance)
    throw new RuntimeError(
      'failed',
      request.instance === undefined
        ? 'No instance of the service runs.'
        : `No instance ${request.instance} of the service runs.`,
    );
  const { terminal } = request;
  const container = node.engine.getContainer(instance.id);
  const exec = await container.exec({
    Cmd: request.command,
    Env: Object.entries(request.environment).map(([key, value]) => `${key}=${value}`),
    AttachStdin: request.stdin !== undefined,
    AttachStdout: true,
    AttachStderr: true,
    ...(terminal ? { Tty: true, ConsoleSize: [terminal.rows, terminal.columns] } : {}),
    abortSignal: signal,
  } as Docker.ExecCreateOptions);
  try {
    return await follow(exec, request, signal);
  } catch (error) {
    // The caller has gone: the rejection is swallowed here.
    await endProgram(container, exec).catch((cause: unknown) =>
      node.log(`${request.command[0]} in ${instance.name} goes on, it could not be ended: ${engineMessage(cause)}`),
    );
    throw error;
  }
}

/** Starts a program, passes its input and output on, and returns its end. */
async function follow(exec: Docker.Exec, request: ExecRequest, signal: AbortSignal): Promise<ExecEnd> {
  const { terminal } = request;
  const stream = await exec.start({
    hijack: true,
    stdin: request.stdin !== undefined,
    Tty: terminal !== undefined,
    abortSignal: signal,
  });
  const stop = () => stream.destroy();
  signal.addEventListener('abort', stop, { once: true });
  try {
    signal.throwIfAborted();
    if (terminal) await exec.resize({ h: terminal.rows, w: terminal.columns, abortSignal: signal });
    const told = new LastBytes(TOLD_BYTES);
    const given = request.stdin ? sendInput(request.stdin, stream) : Promise.resolve();
    // A terminal has a single output, without the engine's frames.
    const read = terminal ? stream : Readable.from(outputOf(stream, told, request.stderr));
    const output = pipeline(read, request.stdout, { end: false, signal });
    // A program that ends early reads no more input: its exit is the result, and remaining input is not awaited.
    await Promise.all([output, Promise.race([output, given.catch(ignoreClosed)])]);
    signal.throwIfAborted();
    const { ExitCode: exitCode } = await exec.inspect();
    return { exitCode: exitCode ?? 128, stderr: told.text() };
  } finally {
    signal.removeEventListener('abort', stop);
    stream.destroy();
  }
}

/** Writes the input and closes that half of the connection, so that the program sees the end of its input. */
async function sendInput(input: Readable, stream: Duplex): Promise<void> {
  for await (const part of input) {
    if (stream.destroyed) return;
    if (!stream.write(part)) await drained(stream);
  }
  stream.end();
}

const drained = (stream: Duplex | Writable): Promise<void> =>
  new Promise((resolve) => {
    const go = () => {
      stream.off('drain', go);
      stream.off('close', go);
      resolve();
    };
    stream.on('drain', go);
    stream.on('close', go);
  });

function ignoreClosed(error: NodeJS.ErrnoException): void {
  if (!['EPIPE', 'ERR_STREAM_PREMATURE_CLOSE', 'ECONNRESET', 'ERR_STREAM_DESTROYED'].includes(error.code ?? ''))
    throw error;
}

/** Passes standard output on and keeps the end of standard error. */
async function* outputOf(stream: Duplex, told: LastBytes, errors?: Writable): AsyncGenerator<Buffer> {
  const frames = new FrameReader();
  for await (const part of stream)
    for (const frame of frames.read(part as Buffer)) {
      if (frame.stream === 'stdout') yield frame.payload;
      else {
        told.push(frame.payload);
        if (errors && !errors.write(frame.payload)) await drained(errors);
      }
    }
}
