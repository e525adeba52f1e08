import { spawn, type ChildProcess } from 'node:child_process';
import { pipeline } from 'node:stream/promises';
import type { HostParts } from '#runtimes/host/host-parts.ts';
import type { Instances } from '#runtimes/host/instances.ts';
import { ownCommand } from '#runtimes/host/programs/image-of.ts';
import { DEFAULT_PATH } from '#runtimes/tools/command.ts';
import { LastBytes, TOLD_BYTES } from '#runtimes/tools/last-bytes.ts';
import { enter, workloadPids } from '#runtimes/tools/shim/index.ts';
import { RuntimeError, type ExecEnd, type ExecRequest } from '#runtimes/runtime.ts';

/** Runs a program in an instance that serves, in its namespaces and as its account (`Runtime.exec`). */
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
  const at = keys.find((key) => instances.shim(key)?.running);
  if (!spec || !at) throw new RuntimeError('failed', 'No instance of the service runs.');
  const target = instances.probeTarget(at, spec);
  const pids = workloadPids(instances.shim(at)!.state.process!.pid, parts.machine.mode === 'namespaces' ? 2 : 0);
  const wrap = enter(target.wrap, pids);
  if (wrap === null) throw new RuntimeError('failed', 'The instance of the service is only just starting.');
  const [program, ...args] = [...wrap, ...ownCommand(parts, at, spec, request.command)];
  const child = spawn(program!, args, {
    env: { PATH: DEFAULT_PATH, ...target.env, ...request.environment },
    cwd: target.cwd,
    stdio: ['pipe', 'pipe', 'pipe'],
    // A group of its own, which ends as a whole: what enters a pid namespace has a child there.
    detached: true,
    ...(target.uid === undefined ? {} : { uid: target.uid, gid: target.gid }),
  });
  return endOf(child, request, signal);
}

async function endOf(child: ChildProcess, request: ExecRequest, signal: AbortSignal): Promise<ExecEnd> {
  const told = new LastBytes(TOLD_BYTES);
  child.stderr!.on('data', (part: Buffer) => told.push(part));
  const stop = () => endGroup(child);
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
    // A program that ends early takes no more input: its own end says why.
    const [exitCode] = await Promise.all([exited, taken, Promise.resolve(given).catch(ignoreClosed)]);
    if (signal.aborted) throw new RuntimeError('aborted', 'Ended: cancelled.', signal.reason);
    return { exitCode, stderr: told.text() };
  } catch (error) {
    stop();
    if (signal.aborted) throw new RuntimeError('aborted', 'Ended: cancelled.', signal.reason);
    throw error;
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

function ignoreClosed(error: NodeJS.ErrnoException): void {
  if (!['EPIPE', 'ERR_STREAM_PREMATURE_CLOSE', 'ECONNRESET'].includes(error.code ?? '')) throw error;
}

function endGroup(child: ChildProcess): void {
  if (child.pid === undefined || child.exitCode !== null) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
