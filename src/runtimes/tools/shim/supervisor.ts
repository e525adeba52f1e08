import { writeAtomically } from '#kernel/private-files.ts';
import { maskOf } from '#kernel/secrets-mask.ts';
import { readdirSync, readFileSync } from 'node:fs';
import { Child, killGroup, type ChildEnd } from '#runtimes/tools/shim/child.ts';
import { identify, readStat, sendSignal, signalProcess, type ProcessIdentity } from '#runtimes/tools/shim/identity.ts';
import { RotatingLog } from '#runtimes/tools/shim/log.ts';
import { enter, probeOnce, type ProbePids } from '#runtimes/tools/shim/probe.ts';
import {
  isDiskFull,
  logFile,
  stateFile,
  type Replacement,
  type ShimConfig,
  type ShimState,
} from '#runtimes/tools/shim/state.ts';

/** Milliseconds that a process which fails its liveness check may take to end by itself. */
const LIVENESS_GRACE_MS = 5_000;
/** Longest delay of a timer in milliseconds: 24 days. */
const LONGEST_MS = 2 ** 31 - 1;
/** Milliseconds until the next attempt to write the state after a full disk. */
const SAVE_AGAIN_MS = 1_000;

/** Keeps one process running: starts it, restarts it with back-off, records its output and its end. */
export class Supervisor {
  readonly #directory: string;
  #config: ShimConfig;
  readonly #bootId: string;
  readonly #log: RotatingLog;
  readonly #mask: (text: string) => string;
  readonly #state: ShimState;
  #child: Child | null = null;
  /** Resolves when the end of the present child is recorded. */
  #settled: Promise<void> = Promise.resolve();
  readonly #retiring = new Set<Child>();
  #replacing: Promise<void> | null = null;
  /** Process that will replace the present one, until it is up. */
  #candidate: Child | null = null;
  #delayMs: number;
  #timer: NodeJS.Timeout | undefined;
  /** Timer of the next attempt to write the state, after a failed one. */
  #unsaved: NodeJS.Timeout | undefined;
  /** Resolves when the end of a process that runs once is recorded. */
  readonly done: Promise<void>;
  readonly #done = Promise.withResolvers<void>();
  /** Reason why the supervisor is ending the process; null otherwise. */
  #reason: string | null = null;

  constructor(directory: string, config: ShimConfig, shim: ProcessIdentity) {
    this.#directory = directory;
    this.#config = config;
    this.#bootId = shim.bootId;
    this.#log = new RotatingLog(logFile(directory), config.log);
    this.#mask = maskOf(config.secrets);
    this.#delayMs = config.backoff.firstMs;
    this.done = this.#done.promise;
    const blank = { process: null, restarts: 0, startedAt: null, lastExit: null };
    this.#state = { format: 1, shim, state: 'starting', ...blank, listens: config.listens ?? false };
  }

  get state(): ShimState {
    return this.#state;
  }

  /** Starts the process, which restarts at its end unless `stop` was called. */
  start(): void {
    this.#save({ state: 'starting' });
    this.#adopt(new Child(this.#config, (stream, line) => this.#write(stream, line)));
  }

  /** Makes this process the one that is kept running. */
  #adopt(child: Child): void {
    this.#child = child;
    this.#settled = child.ended.then((end) => this.#onEnd(child, end));
    if (child.pid === undefined) return;
    this.#save({
      state: 'running',
      process: identify(child.pid, this.#bootId),
      previousStartedAt: this.#state.startedAt,
      startedAt: child.startedAt.toISOString(),
    });
    this.#watchLiveness(child);
    this.#watchTime(child);
  }

  /**
   * Starts another program beside the present one and keeps that one running from then on; the present one is told to retire. Throws if the
   * other does not report in time that it is up: nothing has changed then. Does nothing if the program runs already.
   */
  async replace(replacement: Replacement): Promise<void> {
    while (this.#replacing) await this.#replacing.catch(() => undefined);
    const { command, args, env } = replacement;
    const config = { ...this.#config, command, args, env };
    if (JSON.stringify(config) === JSON.stringify(this.#config) && this.#child?.runs) return;
    this.#replacing = this.#replaceBy(config, replacement).finally(() => (this.#replacing = null));
    await this.#replacing;
  }

  async #replaceBy(config: ShimConfig, { ready, timeoutMs, retire, retireMs }: Replacement): Promise<void> {
    const up = Promise.withResolvers<void>();
    const successor = new Child(config, (stream, line) => {
      this.#write(stream, line);
      if (stream === 'stdout' && line.startsWith(ready)) up.resolve();
    });
    this.#candidate = successor;
    void successor.ended.then(({ why }) => up.reject(new Error(`The new process ${why}.`)));
    const timer = setTimeout(() => up.reject(new Error(`The new process was not up in ${timeoutMs} ms.`)), timeoutMs);
    try {
      await up.promise;
    } catch (error) {
      if (successor.runs) killGroup(successor.pid!);
      throw error;
    } finally {
      clearTimeout(timer);
      this.#candidate = null;
    }
    clearTimeout(this.#timer);
    const predecessor = this.#child;
    this.#config = config;
    this.#delayMs = config.backoff.firstMs;
    if (predecessor?.runs) this.#retire(predecessor, retire, retireMs);
    this.#save({ restarts: 0 });
    this.#adopt(successor);
  }

  #retire(child: Child, signal: NodeJS.Signals, withinMs: number): void {
    this.#retiring.add(child);
    sendSignal(child.pid!, signal);
    const timer = setTimeout(() => killGroup(child.pid!), withinMs);
    void child.ended.then(() => {
      clearTimeout(timer);
      this.#retiring.delete(child);
      this.#save({});
    });
  }

  /** Ends the process without a restart. Resolves when it is gone. */
  async stop(graceMs: number): Promise<void> {
    clearTimeout(this.#timer);
    this.#save({ state: 'stopping' });
    if (this.#candidate?.runs) killGroup(this.#candidate.pid!);
    const retiring = [...this.#retiring].map((child) => endWithin(child, this.#config.stopSignal, graceMs));
    await Promise.all([this.#end('stopped', graceMs), ...retiring]);
    this.#save({ state: 'stopped', process: null });
  }

  /** Ends the process and restarts it at once. Resolves when the new one is started. */
  async restart(graceMs: number): Promise<void> {
    clearTimeout(this.#timer);
    this.#save({ state: 'stopping' });
    await this.#end('restarted', graceMs);
    this.#delayMs = this.#config.backoff.firstMs;
    this.start();
  }

  async #end(reason: string, graceMs: number): Promise<void> {
    const child = this.#child;
    if (!child?.runs) return;
    this.#reason = reason;
    this.#ask(child.pid!);
    const timer = setTimeout(() => this.#kill(child.pid!), graceMs);
    await this.#settled;
    clearTimeout(timer);
  }

  /**
   * Asks the program to end. Before its wrappers have started it, they ignore signals: they are killed at once, or each stop just after a
   * start would take the whole grace period.
   */
  #ask(pid: number): void {
    const depth = this.#config.signalDepth;
    if (!hasDescendant(pid, depth)) return this.#kill(pid);
    const target = identify(workloadPids(pid, depth).process, this.#bootId);
    if (target) signalProcess(target, this.#config.stopSignal, this.#bootId);
  }

  /** Kills the process. A namespace ends with its first process; a process without one ends with its group. */
  #kill(pid: number): void {
    const first = workloadPids(pid, this.#config.signalDepth).init;
    if (first !== pid) sendSignal(first, 'SIGKILL');
    else killGroup(pid);
  }

  #write(stream: 'stdout' | 'stderr', line: string): void {
    this.#log.write({ time: new Date().toISOString(), stream, text: this.#mask(line) });
  }

  #onEnd(child: Child, { code, signal, why }: ChildEnd): void {
    // A replaced process is not restarted.
    if (child !== this.#child) return;
    const now = new Date();
    const stopping = this.#state.state === 'stopping';
    const reason = this.#reason ?? why;
    this.#reason = null;
    const lastExit = { code, signal, reason, at: now.toISOString() };
    if (this.#config.once) return this.#save({ state: 'stopped', process: null, lastExit });
    this.#save({ process: null, lastExit });
    if (stopping) return;
    const { firstMs, maxMs, resetAfterMs } = this.#config.backoff;
    if (now.getTime() - child.startedAt.getTime() >= resetAfterMs) this.#delayMs = firstMs;
    this.#save({ state: 'backoff', restarts: this.#state.restarts + 1 });
    this.#timer = setTimeout(() => this.start(), this.#delayMs);
    this.#delayMs = Math.min(this.#delayMs * 2, maxMs);
  }

  /**
   * Restarts the process when its checks fail `failureThreshold` times in a row. The checks begin when the process exists: on a slow
   * machine, making its namespaces may take longer than all of them.
   */
  #watchLiveness(child: Child): void {
    const liveness = this.#config.liveness;
    if (!liveness) return;
    const { probe, target } = liveness;
    let failures = 0;
    const alive = () => child === this.#child && child.runs;
    const check = async () => {
      if (!alive() || this.#reason !== null) return;
      const pids = workloadPids(child.pid!, this.#config.signalDepth);
      if (enter(target.wrap, pids) === null) return void setTimeout(check, probe.periodSeconds * 1000);
      const why = await probeOnce(probe.check, target, probe.timeoutSeconds * 1000, pids);
      failures = why === null ? 0 : failures + 1;
      if (failures >= probe.failureThreshold && alive() && this.#reason === null)
        await this.#end(`not alive: ${why}`, LIVENESS_GRACE_MS);
      else setTimeout(check, probe.periodSeconds * 1000);
    };
    setTimeout(check, Math.max(probe.initialDelaySeconds, probe.periodSeconds) * 1000);
  }

  /** Ends a process that runs once at its time limit. */
  #watchTime(child: Child): void {
    const { once } = this.#config;
    if (!once) return;
    const timer = setTimeout(() => void this.#end('timeout', once.graceMs), Math.min(once.timeoutMs, LONGEST_MS));
    void child.ended.then(() => clearTimeout(timer));
  }

  #save(change: Partial<ShimState>): void {
    const retiring = [...this.#retiring].flatMap((child) => identify(child.pid!, this.#bootId) ?? []);
    Object.assign(this.#state, change, { retiring });
    clearTimeout(this.#unsaved);
    try {
      writeAtomically(stateFile(this.#directory), JSON.stringify(this.#state));
      if (this.#config.once && this.#state.state === 'stopped') this.#done.resolve();
    } catch (error) {
      if (!isDiskFull(error)) throw error;
      // The process does not depend on the file, and requests on the socket still get the state.
      this.#unsaved = setTimeout(() => this.#save({}), SAVE_AGAIN_MS);
    }
  }
}

/** Asks a process to end and kills it after the grace period. */
async function endWithin(child: Child, signal: NodeJS.Signals, graceMs: number): Promise<void> {
  sendSignal(child.pid!, signal);
  const timer = setTimeout(() => killGroup(child.pid!), graceMs);
  await child.ended;
  clearTimeout(timer);
}

/** Returns the pids of a shim's workload: the wrapper that `depth` counts from is the shim's own child. */
export function workloadPids(child: number, depth: number): ProbePids {
  const init = descendant(child, Math.max(0, depth - 1));
  return { wrapper: child, init, process: depth === 0 ? init : descendant(init, 1) };
}

/** Returns the n-th descendant by first children; the last one if the chain is shorter. */
function descendant(pid: number, depth: number): number {
  if (depth === 0) return pid;
  const child = firstChildOf(pid);
  return child === undefined ? pid : descendant(child, depth - 1);
}

/** Returns whether the chain of first children is that long. */
function hasDescendant(pid: number, depth: number): boolean {
  if (depth === 0) return true;
  const child = firstChildOf(pid);
  return child !== undefined && hasDescendant(child, depth - 1);
}

/**
 * Returns the child that was started first (from /proc). The first process of a namespace inherits others whose parents have ended, and pids
 * begin anew at 300 once they have reached their limit: a later child may have a lower one.
 */
function firstChildOf(pid: number): number | undefined {
  const children = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      const stat = readStat(Number(name));
      return stat?.parent === pid ? [{ pid: Number(name), startTime: Number(stat.startTime) }] : [];
    });
  const earliest = Math.min(...children.map(({ startTime }) => startTime));
  const first = children.filter(({ startTime }) => startTime === earliest).map((child) => child.pid);
  if (first.length < 2) return first[0];
  // Times have hundredths of a second. The kernel lists those that were inherited after its own, where it has the list at all.
  return listedChildren(pid).find((child) => first.includes(child)) ?? Math.min(...first);
}

/** Returns the children of a process in the order of the kernel; empty for a kernel without that list, and for a process that has ended. */
function listedChildren(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number);
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return [];
    throw error;
  }
}
