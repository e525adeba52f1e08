import type Docker from 'dockerode';
import type { Duplex, Writable } from 'node:stream';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { LastBytes, TOLD_BYTES } from '#runtimes/tools/last-bytes.ts';
import { RuntimeError, type ExecEnd, type ExecRequest, type Handle } from '#runtimes/runtime.ts';
import { listInstances } from './instances.ts';
import type { DockerNode } from './node.ts';

const HEADER_BYTES = 8;
const STDERR = 2;

/** Runs a program in an instance that serves (`Runtime.exec`). The engine itself has no way to end one: aborted, its streams end. */
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
  const exec = await node.engine.getContainer(instance.id).exec({
    Cmd: request.command,
    Env: Object.entries(request.environment).map(([key, value]) => `${key}=${value}`),
    AttachStdin: request.stdin !== undefined,
    AttachStdout: true,
    AttachStderr: true,
    ...(terminal ? { Tty: true, ConsoleSize: [terminal.rows, terminal.columns] } : {}),
  } as Docker.ExecCreateOptions);
  const stream = await exec.start({ hijack: true, stdin: request.stdin !== undefined, Tty: terminal !== undefined });
  if (terminal) await exec.resize({ h: terminal.rows, w: terminal.columns });
  const stop = () => stream.destroy();
  signal.addEventListener('abort', stop, { once: true });
  const told = new LastBytes(TOLD_BYTES);
  try {
    const given = request.stdin ? sendInput(request.stdin, stream) : Promise.resolve();
    // A terminal has one output, which comes without the engine's frames.
    const read = terminal ? stream : Readable.from(outputOf(stream, told, request.stderr));
    const output = pipeline(read, request.stdout, { end: false, signal });
    // A program that ends early takes no more input: its own end says why, and input that goes on is not waited for.
    await Promise.all([output, Promise.race([output, given.catch(ignoreClosed)])]);
    signal.throwIfAborted();
    const { ExitCode: exitCode } = await exec.inspect();
    return { exitCode: exitCode ?? 128, stderr: told.text() };
  } finally {
    signal.removeEventListener('abort', stop);
    stream.destroy();
  }
}

/** Writes what there is and closes that half of the connection: the program sees the end of its input. */
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

/** Takes the engine's frames apart: standard output is passed on, the end of standard error is kept. */
async function* outputOf(stream: Duplex, told: LastBytes, errors?: Writable): AsyncGenerator<Buffer> {
  let pending: Buffer = Buffer.alloc(0);
  for await (const part of stream) {
    pending = pending.length === 0 ? (part as Buffer) : Buffer.concat([pending, part as Buffer]);
    while (pending.length >= HEADER_BYTES) {
      const end = HEADER_BYTES + pending.readUInt32BE(4);
      if (pending.length < end) break;
      const payload = pending.subarray(HEADER_BYTES, end);
      if (pending[0] !== STDERR) yield payload;
      else {
        told.push(payload);
        if (errors && !errors.write(payload)) await drained(errors);
      }
      pending = pending.subarray(end);
    }
  }
}
