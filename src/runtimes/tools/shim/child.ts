import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { sendSignal } from '#runtimes/tools/shim/identity.ts';
import { LineCutter } from '#runtimes/tools/shim/log.ts';
import type { ShimConfig } from '#runtimes/tools/shim/state.ts';

/** Milliseconds to wait for the last output while another process (a daemon that left the group) holds the pipes. */
const LAST_OUTPUT_MS = 500;
/** Descriptor of the listening socket, in the shim and in its process. */
const LISTENER = 3;

type Program = Pick<ShimConfig, 'command' | 'args' | 'env' | 'cwd' | 'uid' | 'gid' | 'listens'>;

export interface ChildEnd {
  code: number | null;
  signal: string | null;
  why: string;
}

/** Process under the shim, in its own process group, which ends with it. */
export class Child {
  readonly startedAt = new Date();
  /** Resolves when the process is gone and its last output was delivered. */
  readonly ended: Promise<ChildEnd>;
  readonly #process: ChildProcess;

  constructor(program: Program, onLine: (stream: 'stdout' | 'stderr', line: string) => void) {
    const { command, args, env, cwd, uid, gid, listens } = program;
    const account = uid === undefined ? {} : { uid, gid: gid ?? uid };
    const stdio = ['ignore', 'pipe', 'pipe', ...(listens ? [LISTENER] : [])] as ('ignore' | 'pipe')[];
    const child = spawn(command, args, { env, cwd, ...account, detached: true, stdio });
    this.#process = child;
    const cutters = (['stdout', 'stderr'] as const).map((stream) => {
      const cutter = new LineCutter((line) => onLine(stream, line));
      child[stream]!.on('data', (bytes: Buffer) => cutter.push(bytes));
      return cutter;
    });
    this.ended = this.#end().finally(() => cutters.forEach((cutter) => cutter.end()));
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  get runs(): boolean {
    const { pid, exitCode, signalCode } = this.#process;
    return pid !== undefined && exitCode === null && signalCode === null;
  }

  #end(): Promise<ChildEnd> {
    const child = this.#process;
    return new Promise((resolve) => {
      child.once('error', (error) => resolve({ code: null, signal: null, why: `cannot be started: ${error.message}` }));
      child.once('exit', (code, signal) => {
        killGroup(child.pid!);
        const why = code === null ? `ended by ${signal}` : `ended with status ${code}`;
        void lastOutputOf(child).then(() => resolve({ code, signal, why }));
      });
    });
  }
}

/** Waits for the last output. What the pipes hold by the time that it takes too long is read, however long this process was kept waiting. */
async function lastOutputOf(child: ChildProcess): Promise<void> {
  await Promise.race([once(child, 'close'), sleep(LAST_OUTPUT_MS)]);
  await setImmediate();
}

export function killGroup(pid: number): void {
  sendSignal(-pid, 'SIGKILL');
}
