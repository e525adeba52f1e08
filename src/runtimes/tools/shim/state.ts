import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
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
  /** Values that never get into the log (decisions.md 36). */
  secrets: string[];
}

export interface LastExit {
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
}

/** A request on the shim's socket: one JSON line, answered by one JSON line with the state when it is done. */
export type ShimRequest = { do: 'status' } | { do: 'stop' | 'restart'; graceMs: number };

export const stateFile = (directory: string) => join(directory, 'state.json');
export const logFile = (directory: string) => join(directory, 'log');
export const SOCKET_NAME = 'control';

/** Replaces a file so that a reader sees the old content or the new one, never a part. Mode 0600. */
export function writeAtomically(path: string, content: string): void {
  const temporary = `${path}.${process.pid}.new`;
  writeFileSync(temporary, content, { mode: 0o600 });
  renameSync(temporary, path);
}

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
