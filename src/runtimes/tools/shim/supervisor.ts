import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { identify, readStat, sendSignal, signalProcess, type ProcessIdentity } from '#runtimes/tools/shim/identity.ts';
import { LineCutter, masker, RotatingLog } from '#runtimes/tools/shim/log.ts';
import { probeOnce, type ProbePids } from '#runtimes/tools/shim/probe.ts';
import { logFile, stateFile, writeAtomically, type ShimConfig, type ShimState } from '#runtimes/tools/shim/state.ts';

/** How long a process that fails its liveness check may take to end by itself. */
const LIVENESS_GRACE_MS = 5_000;
/** How long the last output is waited for when a stranger (a daemon that left the group) holds the pipes. */
const LAST_OUTPUT_MS = 500;

/** Keeps one process running: starts it, starts it anew with back-off, writes down its output and its end. */
export class Supervisor {
  readonly #directory: string;
  readonly #config: ShimConfig;
  readonly #bootId: string;
  readonly #log: RotatingLog;
  readonly #mask: (text: string) => string;
  readonly #state: ShimState;
  #child: ChildProcess | null = null;
  #ended: Promise<void> = Promise.resolve();
  #delayMs: number;
  #timer: NodeJS.Timeout | undefined;
  /** Why the process is being ended by us, if it is. */
  #reason: string | null = null;

  constructor(directory: string, config: ShimConfig, shim: ProcessIdentity) {
    this.#directory = directory;
    this.#config = config;
    this.#bootId = shim.bootId;
    this.#log = new RotatingLog(logFile(directory), config.log);
    this.#mask = masker(config.secrets);
    this.#delayMs = config.backoff.firstMs;
    const blank = { process: null, restarts: 0, startedAt: null, lastExit: null };
    this.#state = { format: 1, shim, state: 'starting', ...blank };
  }

  get state(): ShimState {
    return this.#state;
  }

  /** Starts the process; its end starts it anew unless `stop` was called. */
  start(): void {
    this.#save({ state: 'starting' });
    const { command, args, env, cwd, uid, gid } = this.#config;
    const account = uid === undefined ? {} : { uid, gid: gid ?? uid };
    const child = spawn(command, args, { env, cwd, ...account, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child = child;
    const startedAt = new Date();
    const output = [this.#capture(child, 'stdout'), this.#capture(child, 'stderr')];
    this.#ended = new Promise((resolve) => {
      const end = (code: number | null, signal: string | null, why: string) => {
        for (const cutter of output) cutter.end();
        this.#onEnd(startedAt, code, signal, why);
        resolve();
      };
      child.once('error', (error) => end(null, null, `cannot be started: ${error.message}`));
      child.once('exit', (code, signal) => {
        killGroup(child.pid!);
        const why = code === null ? `ended by ${signal}` : `ended with status ${code}`;
        void Promise.race([once(child, 'close'), sleep(LAST_OUTPUT_MS)]).then(() => end(code, signal, why));
      });
    });
    if (child.pid === undefined) return;
    this.#save({
      state: 'running',
      process: identify(child.pid, this.#bootId),
      startedAt: startedAt.toISOString(),
    });
    this.#watchLiveness(child);
  }

  /** Ends the process and doesn't start it again. Resolves when it is gone. */
  async stop(graceMs: number): Promise<void> {
    clearTimeout(this.#timer);
    this.#save({ state: 'stopping' });
    await this.#end('stopped', graceMs);
    this.#save({ state: 'stopped', process: null });
  }

  /** Ends the process and starts it anew at once. Resolves when the new one is started. */
  async restart(graceMs: number): Promise<void> {
    clearTimeout(this.#timer);
    this.#save({ state: 'stopping' });
    await this.#end('restarted', graceMs);
    this.#delayMs = this.#config.backoff.firstMs;
    this.start();
  }

  async #end(reason: string, graceMs: number): Promise<void> {
    const child = this.#child;
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    this.#reason = reason;
    const target = identify(workloadPids(child.pid, this.#config.signalDepth).process, this.#bootId);
    if (target) signalProcess(target, this.#config.stopSignal, this.#bootId);
    const timer = setTimeout(() => this.#kill(child.pid!), graceMs);
    await this.#ended;
    clearTimeout(timer);
  }

  /** A namespace ends with its first process; what shares our own namespace ends with the group. */
  #kill(pid: number): void {
    const first = workloadPids(pid, this.#config.signalDepth).init;
    if (first !== pid) sendSignal(first, 'SIGKILL');
    else killGroup(pid);
  }

  #capture(child: ChildProcess, stream: 'stdout' | 'stderr'): LineCutter {
    const cutter = new LineCutter((line) =>
      this.#log.write({ time: new Date().toISOString(), stream, text: this.#mask(line) }),
    );
    child[stream]!.on('data', (bytes: Buffer) => cutter.push(bytes));
    return cutter;
  }

  #onEnd(startedAt: Date, code: number | null, signal: string | null, why: string): void {
    const now = new Date();
    const stopping = this.#state.state === 'stopping';
    const reason = this.#reason ?? why;
    this.#reason = null;
    this.#save({ process: null, lastExit: { code, signal, reason, at: now.toISOString() } });
    if (stopping) return;
    const { firstMs, maxMs, resetAfterMs } = this.#config.backoff;
    if (now.getTime() - startedAt.getTime() >= resetAfterMs) this.#delayMs = firstMs;
    this.#save({ state: 'backoff', restarts: this.#state.restarts + 1 });
    this.#timer = setTimeout(() => this.start(), this.#delayMs);
    this.#delayMs = Math.min(this.#delayMs * 2, maxMs);
  }

  /** Ends the process when its checks fail `failureThreshold` times in a row, so that it is started anew. */
  #watchLiveness(child: ChildProcess): void {
    const liveness = this.#config.liveness;
    if (!liveness) return;
    const { probe, target } = liveness;
    let failures = 0;
    const alive = () => child === this.#child && child.exitCode === null && child.signalCode === null;
    const check = async () => {
      if (!alive() || this.#reason !== null) return;
      const pids = workloadPids(child.pid!, this.#config.signalDepth);
      const why = await probeOnce(probe.check, target, probe.timeoutSeconds * 1000, pids);
      failures = why === null ? 0 : failures + 1;
      if (failures >= probe.failureThreshold && alive() && this.#reason === null)
        await this.#end(`not alive: ${why}`, LIVENESS_GRACE_MS);
      else setTimeout(check, probe.periodSeconds * 1000);
    };
    setTimeout(check, Math.max(probe.initialDelaySeconds, probe.periodSeconds) * 1000);
  }

  #save(change: Partial<ShimState>): void {
    Object.assign(this.#state, change);
    writeAtomically(stateFile(this.#directory), JSON.stringify(this.#state));
  }
}

function killGroup(pid: number): void {
  sendSignal(-pid, 'SIGKILL');
}

/** Pids of what a shim keeps running: the wrapper that `depth` counts from is the shim's own child. */
export function workloadPids(child: number, depth: number): ProbePids {
  const init = descendant(child, Math.max(0, depth - 1));
  return { wrapper: child, init, process: depth === 0 ? init : descendant(init, 1) };
}

/** The n-th descendant by first children; the last one that there is when the chain is shorter. */
function descendant(pid: number, depth: number): number {
  if (depth === 0) return pid;
  const child = childrenOf(pid)[0];
  return child === undefined ? pid : descendant(child, depth - 1);
}

/** Pids whose parent is the given one (from /proc; needs no kernel option). */
function childrenOf(pid: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && readStat(Number(name))?.parent === pid)
    .map(Number);
}
