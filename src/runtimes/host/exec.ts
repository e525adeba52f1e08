import type { ChildProcess } from 'node:child_process';
import { pipeline } from 'node:stream/promises';
import type { HostParts } from '#runtimes/host/host-parts.ts';
import type { Instances } from '#runtimes/host/instances.ts';
import { instanceName } from '#runtimes/host/layout.ts';
import { ownCommand } from '#runtimes/host/programs/image-of.ts';
import { onTerminal } from '#runtimes/host/terminal.ts';
import { DEFAULT_PATH } from '#runtimes/tools/command.ts';
import { LastBytes, TOLD_BYTES } from '#runtimes/tools/last-bytes.ts';
import { endSession, enter, hasEnded, startEntered, workloadPids } from '#runtimes/tools/shim/index.ts';
import { RuntimeError, throwIfCancelled, type ExecEnd, type ExecRequest } from '#runtimes/runtime.ts';

/** Runs a program in an instance that serves, in its namespaces, as its account and within its limits (`Runtime.exec`). */
export async function execInInstance(
  parts: HostParts,
  instances: Instances,
  serviceId: string,
  request: ExecRequest,
  signal: AbortSignal,
): Promise<ExecEnd> {
  const current = parts.releases.current(serviceId);
  const spec = current && parts.releases.read(serviceId, current.generation);
  const keys = (current?.instances ?? []).map((n) => ({ serviceId, generation: current!.generation, n }));
  const at = keys.find(
    (key) => instances.shim(key)?.running && (request.instance === undefined || instanceName(key) === request.instance),
  );
  if (!spec || !at)
    throw new RuntimeError(
      'failed',
      request.instance === undefined
        ? 'No instance of the service runs.'
        : `No instance ${request.instance} of the service runs.`,
    );
  const target = instances.probeTarget(at, spec);
  const pids = workloadPids(instances.shim(at)!.state.process!.pid, parts.machine.mode === 'namespaces' ? 2 : 0);
  const wrap = enter(target.wrap, pids);
  if (wrap === null) throw new RuntimeError('failed', 'The instance of the service is only just starting.');
  const given = { ...target.env, ...request.environment };
  const command = ownCommand(parts, at, spec, request.command);
  const { argv, env } = request.terminal ? onTerminal(command, given, request.terminal) : { argv: command, env: given };
  const own = { ...target, env: target.sealed ? env : { PATH: DEFAULT_PATH, ...env } };
  const child = startEntered([...wrap, ...argv] as [string, ...string[]], own, pids, ['pipe', 'pipe', 'pipe']);
  return endOf(child, request, signal);
}

async function endOf(child: ChildProcess, request: ExecRequest, signal: AbortSignal): Promise<ExecEnd> {
  const told = new LastBytes(TOLD_BYTES);
  child.stderr!.on('data', (part: Buffer) => told.push(part));
  const stop = () => {
    if (child.pid !== undefined) endSession(child.pid, hasEnded(child));
  };
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  try {
    const exited = new Promise<number>((resolve, reject) => {
      child.once('error', (cause) =>
        reject(new RuntimeError('failed', `${request.command[0]}: ${cause.message}`, cause)),
      );
      child.once('close', (code) => resolve(code ?? 128));
    });
    const given = request.stdin ? pipeline(request.stdin, child.stdin!, { signal }) : child.stdin!.end();
    const taken = pipeline(child.stdout!, request.stdout, { end: false, signal });
    const errors = request.stderr && pipeline(child.stderr!, request.stderr, { end: false, signal });
    // A program that ends early reads no more input; its end gives the reason.
    const taking = Promise.race([exited, Promise.resolve(given).catch(ignoreClosed)]);
    const [exitCode] = await Promise.all([exited, taken, errors, taking]);
    throwIfCancelled(signal);
    return { exitCode, stderr: told.text() };
  } catch (error) {
    stop();
    throwIfCancelled(signal);
    throw error;
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

function ignoreClosed(error: NodeJS.ErrnoException): void {
  if (!['EPIPE', 'ERR_STREAM_PREMATURE_CLOSE', 'ECONNRESET'].includes(error.code ?? '')) throw error;
}
