import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/**
 * Unique identity of a process: a pid alone is reused later. `startTime` is field 22 of `/proc/<pid>/stat` (clock ticks since boot);
 * without /proc it is the output of `ps`.
 */
export interface ProcessIdentity {
  bootId: string;
  pid: number;
  startTime: string;
}

/** Fields of `/proc/<pid>/stat`. */
export interface ProcessStat {
  state: string;
  parent: number;
  session: number;
  startTime: string;
  threads: number;
  /** Clock ticks of CPU, user and system. */
  ticks: number;
  /** Pages of resident memory. */
  residentPages: number;
}

/** Parses the one line of `/proc/<pid>/stat`; the program's name in it may hold blanks and parentheses. */
export function parseStat(text: string): ProcessStat {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return {
    state: fields[0]!,
    parent: Number(fields[1]),
    session: Number(fields[3]),
    ticks: Number(fields[11]) + Number(fields[12]),
    startTime: fields[19]!,
    threads: Number(fields[17]),
    residentPages: Number(fields[21]),
  };
}

/** Reads the fields of a process from /proc; null if it is gone. */
export function readStat(pid: number): ProcessStat | null {
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch (error) {
    if (isGone(error)) return null;
    throw error;
  }
}

/** Returns the identifier of the machine's present boot: pids and start times of another boot have no meaning. */
export function readBootId(): string {
  if (process.platform === 'linux') return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  return execFileSync('sysctl', ['-n', 'kern.boottime'], { encoding: 'utf8' }).trim();
}

/** Returns the identity of a running process; null if it is gone or a zombie. */
export function identify(pid: number, bootId: string): ProcessIdentity | null {
  const startTime = process.platform === 'linux' ? linuxStart(pid) : psStart(pid);
  return startTime === null ? null : { bootId, pid, startTime };
}

/** Returns whether exactly this process still runs. */
export function isRunning(identity: ProcessIdentity, bootId: string): boolean {
  return identity.bootId === bootId && identify(identity.pid, bootId)?.startTime === identity.startTime;
}

/** Sends a signal if exactly this process still runs; returns whether it did. */
export function signalProcess(identity: ProcessIdentity, signal: NodeJS.Signals, bootId: string): boolean {
  return isRunning(identity, bootId) && sendSignal(identity.pid, signal);
}

/** Sends a signal to a pid or, negative, to a process group; false if it no longer exists. */
export function sendSignal(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw error;
  }
}

/** Returns whether reading /proc failed because the process is gone. */
export function isGone(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code;
  return code === 'ENOENT' || code === 'ESRCH';
}

function linuxStart(pid: number): string | null {
  const stat = readStat(pid);
  if (stat === null || stat.state === 'X') return null;
  // While other threads of a zombie are still ending, its files and sockets are still open.
  return stat.state === 'Z' && stat.threads <= 1 ? null : stat.startTime;
}

function psStart(pid: number): string | null {
  try {
    const [state, ...start] = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { encoding: 'utf8' })
      .trim()
      .split(/\s+/);
    return state === undefined || state.startsWith('Z') ? null : start.join(' ');
  } catch (error) {
    if ((error as { status?: number }).status === 1) return null;
    throw error;
  }
}
