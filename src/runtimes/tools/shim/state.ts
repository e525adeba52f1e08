import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ProcessIdentity } from '#runtimes/tools/shim/identity.ts';
import type { ProbeTarget } from '#runtimes/tools/shim/probe.ts';
import type { Probe } from '#runtimes/runtime.ts';

/** What a shim is told on its standard input when it starts; nothing of it is written to disk (it holds secrets). */
export interface ShimConfig {
  /** Program and arguments of the process that is kept running. */
  command: string;
  args: string[];
  /** The whole environment of the process. */
  env: Record<string, string>;
  cwd: string;
  /** Numeric account to run as; needs root. */
  uid?: number;
  gid?: number;
  /**
   * Which process gets the stop signal: the child itself (0) or its n-th descendant, where the child is a wrapper such as
   * `unshare --fork`. SIGKILL goes to the one before it (a namespace's first process) and to the child's group.
   */
  signalDepth: number;
  /** What asks the process to end (STOPSIGNAL of an image). */
  stopSignal: NodeJS.Signals;
  log: { maxBytes: number; files: number };
  backoff: { firstMs: number; maxMs: number; resetAfterMs: number };
  /** Checks after which the process is started anew when they fail; `exec` runs `wrap` before the command. */
  liveness?: { probe: Probe; target: ProbeTarget };
  /** The process runs once: its end is written down and the shim ends, too. After `timeoutMs` it is ended as `stop` does it. */
  once?: { timeoutMs: number; graceMs: number };
  /** Values that never get into the log (docs/contributing/rules.md 36). */
  secrets: string[];
  /** Descriptor 3 of the shim is a listening socket, which its process gets as its own 3 (StartShim.listen). */
  listens?: boolean;
}

interface LastExit {
  code: number | null;
  signal: string | null;
  reason: string;
  at: string;
}

/** `<directory>/state.json`. `process` is the child while it runs. */
export interface ShimState {
  format: 1;
  shim: ProcessIdentity;
  process: ProcessIdentity | null;
  state: 'starting' | 'running' | 'backoff' | 'stopping' | 'stopped';
  restarts: number;
  startedAt: string | null;
  lastExit: LastExit | null;
  /** Whether it holds a listening socket, so that its process can be replaced without a gap. */
  listens?: boolean;
  /** Processes that were replaced and have not ended yet. */
  retiring?: ProcessIdentity[];
}

/** Another program in place of the one that runs: started beside it, which is told to retire once the new one is up. */
export interface Replacement {
  command: string;
  args: string[];
  env: Record<string, string>;
  /** How the line of its output begins by which it says that it is up. */
  ready: string;
  /** How long that may take, in milliseconds. */
  timeoutMs: number;
  /** Tells the present process to take nothing new and to end when it has nothing left to do. */
  retire: NodeJS.Signals;
  /** When it is ended all the same, in milliseconds. */
  retireMs: number;
}

/** A request on the shim's socket: one JSON line, answered by one JSON line when it is done. */
export type ShimRequest =
  { do: 'status' } | { do: 'stop' | 'restart'; graceMs: number } | ({ do: 'replace' } & Replacement);

export type ShimAnswer = ShimState | { error: string };

export const stateFile = (directory: string) => join(directory, 'state.json');
export const logFile = (directory: string) => join(directory, 'log');
export const SOCKET_NAME = 'control';
/** Exit status of a shim in whose folder another one runs. */
export const HELD_STATUS = 75;

/** Replaces a file so that a reader sees the old content or the new one, never a part. Mode 0600. What fails leaves nothing. */
export function writeAtomically(path: string, content: string): void {
  const temporary = `${path}.${process.pid}.new`;
  try {
    writeFileSync(temporary, content, { mode: 0o600 });
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

/** Whether something failed because there is no space: what only writes something down goes on without. */
export const isDiskFull = (error: unknown): boolean =>
  ['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '');

/** Reads a JSON file, null when it isn't there. */
export function readJson<T>(path: string): T | null {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as T;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/** Makes a directory that only this account can read, and those above it. */
export function makePrivate(directory: string): void {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
}
