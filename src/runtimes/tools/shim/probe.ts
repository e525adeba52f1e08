import { spawn, type ChildProcess } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { spawnSealed } from '#runtimes/tools/shim/sealed-environment.ts';
import { joinGroups } from '#runtimes/tools/shim/control-groups.ts';
import { isGone } from '#runtimes/tools/shim/identity.ts';
import { endSession } from '#runtimes/tools/shim/process-tree.ts';
import type { ProbeCheck } from '#runtimes/runtime.ts';

/** Target of a workload's checks. */
export interface ProbeTarget {
  /** Address of the instance. */
  address: string;
  /** Port of the workload -> actual port; ports that are not listed are unchanged. */
  ports: Record<string, number>;
  /** True if the ports belong to a forwarder, which accepts connections before the workload listens; absent is false. */
  forwarded?: boolean;
  /**
   * Arguments before an `exec` check's command that enter the workload's namespaces. `{wrapper}` stands for the pid of the process that
   * made them, `{init}` for their first one, `{pid}` for that of the workload, `{inner}` for the latter inside its pid namespace.
   */
  wrap: string[];
  /** True if `wrap` ends with the program that reads the environment from descriptor 3 (sealed-environment.ts); absent is false. */
  sealed?: boolean;
  /** Files by which a process joins the workload's control groups; absent is none. Only with `sealed`. */
  groups?: string[];
  /** Environment and folder of `exec` checks. */
  env: Record<string, string>;
  cwd: string;
  uid?: number;
  gid?: number;
}

/** Pids of a workload that `exec` checks enter. */
export interface ProbePids {
  wrapper: number;
  init: number;
  process: number;
}

/**
 * Checks once; returns null on success, otherwise the reason. The check connects only to the instance, whatever its path or host says: it
 * is made from the machine's own network, which users must not explore.
 */
export async function probeOnce(
  check: ProbeCheck,
  target: ProbeTarget,
  timeoutMs: number,
  pids: ProbePids,
): Promise<string | null> {
  if (check.type === 'exec') return execCheck(check.command, target, timeoutMs, pids);
  const port = target.ports[String(check.port)] ?? check.port;
  if (check.type === 'tcp') return tcpCheck(target.address, port, timeoutMs, target.forwarded ?? false);
  if (check.type === 'grpc') return grpcCheck(target.address, port, check.service ?? '', timeoutMs);
  return httpCheck(`${check.scheme.toLowerCase()}://${bracket(target.address)}:${port}`, check.path, timeoutMs);
}

const bracket = (address: string) => (address.includes(':') ? `[${address}]` : address);

/**
 * Milliseconds that a connection through a forwarder must last (at most half of the time limit): it ends connections that the workload
 * refuses.
 */
const HELD_MS = 500;

function tcpCheck(host: string, port: number, timeoutMs: number, forwarded: boolean): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    let held: NodeJS.Timeout | undefined;
    const end = (why: string | null) => {
      clearTimeout(held);
      socket.destroy();
      resolve(why);
    };
    socket.setTimeout(timeoutMs, () => end(`port ${port} did not answer within ${timeoutMs} ms`));
    socket.once('error', (error) => end(`port ${port}: ${error.message}`));
    if (!forwarded) return void socket.once('connect', () => end(null));
    socket.once('data', () => end(null));
    socket.once('close', () => end(`port ${port} ended the connection at once`));
    socket.once('connect', () => (held = setTimeout(() => end(null), Math.min(HELD_MS, timeoutMs / 2))));
  });
}

/** Checks for a status from 200 to 399, as Kubernetes does. Certificates are not verified: an instance has none from a known authority. */
async function httpCheck(origin: string, path: string, timeoutMs: number): Promise<string | null> {
  // The path is not resolved against the origin: `//host/` would lead to another host.
  const url = new URL(`${origin}${path.startsWith('/') ? path : `/${path}`}`);
  const { get } = await (url.protocol === 'https:' ? import('node:https') : import('node:http'));
  return new Promise((resolve) => {
    const signal = AbortSignal.timeout(timeoutMs);
    const request = get(url, { signal, agent: false, rejectUnauthorized: false } as object, (response) => {
      response.resume();
      const status = response.statusCode ?? 0;
      resolve(status >= 200 && status < 400 ? null : `GET ${path} answered ${status}`);
    });
    request.once('error', (error) =>
      resolve(`GET ${path}: ${signal.aborted ? `no answer within ${timeoutMs} ms` : error.message}`),
    );
  });
}

/** Checks the standard health service (grpc.health.v1.Health/Check) over HTTP/2 without TLS; status 1 is SERVING. */
async function grpcCheck(address: string, port: number, service: string, timeoutMs: number): Promise<string | null> {
  const { connect: connectHttp2 } = await import('node:http2');
  const session = connectHttp2(`http://${bracket(address)}:${port}`);
  try {
    const answer = await new Promise<Buffer>((resolve, reject) => {
      session.once('error', reject);
      const stream = session.request({
        ':method': 'POST',
        ':path': '/grpc.health.v1.Health/Check',
        'content-type': 'application/grpc',
        te: 'trailers',
      });
      const parts: Buffer[] = [];
      stream.setTimeout(timeoutMs, () => reject(new Error(`no answer within ${timeoutMs} ms`)));
      stream.on('data', (part: Buffer) => parts.push(part));
      stream.once('error', reject);
      stream.once('end', () => resolve(Buffer.concat(parts)));
      stream.end(grpcRequest(service));
    });
    const serving = answer.length >= 7 && answer[5] === 0x08 && answer[6] === 1;
    return serving ? null : `gRPC health of "${service}" is not SERVING`;
  } catch (error) {
    return `gRPC health: ${(error as Error).message}`;
  } finally {
    session.destroy();
  }
}

/** Returns an uncompressed message: 5 bytes of header and `HealthCheckRequest {service = 1}`. */
function grpcRequest(service: string): Buffer {
  const name = Buffer.from(service);
  const message = name.length ? Buffer.concat([Buffer.from([0x0a, name.length]), name]) : Buffer.alloc(0);
  const header = Buffer.alloc(5);
  header.writeUInt32BE(message.length, 1);
  return Buffer.concat([header, message]);
}

function execCheck(command: string[], target: ProbeTarget, timeoutMs: number, pids: ProbePids): Promise<string | null> {
  const wrap = enter(target.wrap, pids);
  if (wrap === null) return Promise.resolve('it is not running yet');
  const [program, ...args] = [...wrap, ...command];
  const name = command[0] ?? '';
  if (program === undefined) return Promise.resolve('the check has no command');
  return new Promise((resolve) => {
    const child = startEntered([program, ...args], target, pids, ['ignore', 'ignore', 'ignore']);
    const end = (why: string | null) => {
      clearTimeout(timer);
      resolve(why);
    };
    const giveUp = (why: string) => {
      if (child.pid !== undefined) endSession(child.pid, hasEnded(child));
      end(why);
    };
    const timer = setTimeout(() => giveUp(`${name} did not end within ${timeoutMs} ms`), timeoutMs);
    child.once('error', (error) => giveUp(`${name}: ${error.message}`));
    child.once('exit', (code, signal) =>
      end(code === 0 ? null : `${name} ended with ${code === null ? signal : `status ${code}`}`),
    );
  });
}

/**
 * Starts a command beside a workload in its own session, behind the arguments that enter it (`enter`). The command has the limits of the
 * workload; the entering programs do not, because they would use them up.
 */
export function startEntered(
  [program, ...args]: [string, ...string[]],
  target: ProbeTarget,
  pids: ProbePids,
  stdio: ('pipe' | 'ignore')[],
): ChildProcess {
  const options = {
    cwd: target.cwd,
    detached: true,
    ...(target.uid === undefined ? {} : { uid: target.uid, gid: target.gid }),
  };
  if (!target.sealed) return spawn(program, args, { ...options, stdio, env: target.env });
  // The workload's first process is moved, too: the entering program loads the workload's libraries, which may leave a process running.
  const confine = (pid: number) => joinGroups(target.groups ?? [], [pid, pids.init]);
  return spawnSealed(program, args, target.env, { ...options, stdio }, confine);
}

export const hasEnded = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null;

/**
 * Returns the arguments that enter a workload, for a command behind them. Null while its process does not exist, or is still outside of its
 * own root.
 */
export function enter(wrap: string[], pids: ProbePids): string[] | null {
  if (wrap.length === 0) return [];
  const inner = innerPid(pids.process);
  const [own, outer] = [rootOf(pids.process), rootOf(pids.init)];
  if (inner === null || own === null || own === outer) return null;
  const values = { '{wrapper}': pids.wrapper, '{init}': pids.init, '{pid}': pids.process, '{inner}': inner };
  return wrap.map((part) =>
    Object.entries(values).reduce((text, [name, pid]) => text.replaceAll(name, String(pid)), part),
  );
}

/** Returns the pid of a process inside its own pid namespace; null if it is gone. */
function innerPid(pid: number): number | null {
  return ifThere(() => {
    const line = /^NSpid:\s+(.*)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
    return Number(line?.[1]!.split(/\s+/).at(-1) ?? pid);
  });
}

/** Returns the device and inode of a process's root; null if the process is gone. */
function rootOf(pid: number): string | null {
  return ifThere(() => {
    const { dev, ino } = statSync(`/proc/${pid}/root/`);
    return `${dev}:${ino}`;
  });
}

function ifThere<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    if (isGone(error)) return null;
    throw error;
  }
}
