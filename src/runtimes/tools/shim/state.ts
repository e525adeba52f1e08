import { join } from 'node:path';
import type { ProcessIdentity } from '#runtimes/tools/shim/identity.ts';
import type { ProbeTarget } from '#runtimes/tools/shim/probe.ts';
import type { Probe } from '#runtimes/runtime.ts';

/** Configuration of a shim, sent to its standard input at the start. It is never written to disk, because it holds secrets. */
export interface ShimConfig {
  /** Program of the process that is kept running. */
  command: string;
  args: string[];
  /** The whole environment of the process. */
  env: Record<string, string>;
  cwd: string;
  /** Numeric account to run as; needs root. */
  uid?: number;
  gid?: number;
  /**
   * Position of the process that gets the stop signal: the child itself (0) or its n-th descendant, if the child is a wrapper such as
   * `unshare --fork`. SIGKILL goes to the one before it (a namespace's first process) and to the child's group.
   */
  signalDepth: number;
  /** Signal that asks the process to end (STOPSIGNAL of an image). */
  stopSignal: NodeJS.Signals;
  log: { maxBytes: number; files: number };
  backoff: { firstMs: number; maxMs: number; resetAfterMs: number };
  /** Checks whose failure restarts the process; `exec` runs `wrap` before the command. */
  liveness?: { probe: Probe; target: ProbeTarget };
  /** Limits of a process that runs once: its end is recorded and the shim ends, too. After `timeoutMs` it is ended as by `stop`. */
  once?: { timeoutMs: number; graceMs: number };
  /** Values that are masked in the log (docs/contributing/rules.md 36). */
  secrets: string[];
  /** True if descriptor 3 of the shim is a listening socket, which its process gets as its own 3 (StartShim.listen). */
  listens?: boolean;
}

interface LastExit {
  code: number | null;
  signal: string | null;
  reason: string;
  at: string;
}

/** State of a shim, `<directory>/state.json`. `process` is the child while it runs. */
export interface ShimState {
  format: 1;
  shim: ProcessIdentity;
  process: ProcessIdentity | null;
  state: 'starting' | 'running' | 'backoff' | 'stopping' | 'stopped';
  restarts: number;
  startedAt: string | null;
  /** Start of the process before the present one; absent in states of older versions. */
  previousStartedAt?: string | null;
  lastExit: LastExit | null;
  /** True if it holds a listening socket, so that its process can be replaced without a gap. */
  listens?: boolean;
  /** Processes that were replaced and have not ended yet. */
  retiring?: ProcessIdentity[];
}

/** Program that replaces the running one: it is started beside it, and the old one is told to retire once the new one is up. */
export interface Replacement {
  command: string;
  args: string[];
  env: Record<string, string>;
  /** Start of the output line that reports that the new program is up. */
  ready: string;
  /** Milliseconds until the new program must be up. */
  timeoutMs: number;
  /** Signal that tells the old process to accept nothing new and to end when its work is done. */
  retire: NodeJS.Signals;
  /** Milliseconds after which the old process is ended regardless. */
  retireMs: number;
}

/** Request on the shim's socket: one JSON line, answered by one JSON line when it is done. */
export type ShimRequest =
  { do: 'status' } | { do: 'stop' | 'restart'; graceMs: number } | ({ do: 'replace' } & Replacement);

export type ShimAnswer = ShimState | { error: string };

export const stateFile = (directory: string) => join(directory, 'state.json');
export const logFile = (directory: string) => join(directory, 'log');
export const SOCKET_NAME = 'control';
/** Exit status of a shim whose folder another one uses. */
export const HELD_STATUS = 75;

/** Returns whether an error means a full disk: work that only records state continues without it. */
export const isDiskFull = (error: unknown): boolean =>
  ['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '');
