import { setTimeout as sleep } from 'node:timers/promises';
import { RuntimeError, cancelled } from '#runtimes/runtime.ts';

export interface CommandOptions {
  /** Working directory. */
  cwd?: string;
  /** Whole environment of the child, which inherits nothing of this process. `PATH` is set if missing. */
  env?: Record<string, string>;
  /** Signal whose abort ends the child's whole process group. */
  signal?: AbortSignal;
  /** Seconds until the child is ended; no limit without it. */
  timeoutSeconds?: number;
  /** Called with each line of standard output and standard error as it comes. */
  onLine?: (line: string, stream: 'stdout' | 'stderr') => void;
  /** Text for standard input; empty if absent. */
  input?: string;
  /** File for standard input, instead of `input`. */
  inputFile?: string;
  /** Number of bytes kept of each stream, the last ones; 1 MiB if absent. */
  keepBytes?: number;
  /** Numeric account to run as; needs root. */
  uid?: number;
  gid?: number;
}

export interface CommandResult {
  exitCode: number;
  stdout: string;
  stderr: string;
}

/** PATH of children that are not given one. */
export const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/**
 * Runs a program with an argument list (never through a shell) and returns its end, whatever its exit status. The child gets its own
 * process group, which is ended as a whole on abort or time-out. Throws RuntimeError: `aborted`, or `failed` if the program cannot be
 * started or runs out of time.
 */
export async function runCommand(
  program: string,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<CommandResult> {
  // Loaded with the first command, because it costs time and 8 MB.
  const { execa } = await import('execa');
  options.signal?.throwIfAborted();
  const kept = { stdout: new TailBuffer(options.keepBytes), stderr: new TailBuffer(options.keepBytes) };
  const child = execa(program, args, {
    cwd: options.cwd,
    env: { PATH: DEFAULT_PATH, ...options.env },
    extendEnv: false,
    ...(options.inputFile === undefined ? { input: options.input ?? '' } : { inputFile: options.inputFile }),
    detached: true,
    cleanup: false,
    reject: false,
    buffer: false,
    stripFinalNewline: false,
    ...(options.uid === undefined ? {} : { uid: options.uid }),
    ...(options.gid === undefined ? {} : { gid: options.gid }),
  });
  let timedOut = false;
  const endGroup = () => {
    if (child.pid === undefined) return;
    try {
      process.kill(-child.pid, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  };
  options.signal?.addEventListener('abort', endGroup, { once: true });
  const timer = options.timeoutSeconds
    ? setTimeout(() => {
        timedOut = true;
        endGroup();
      }, options.timeoutSeconds * 1000)
    : undefined;
  const read = async (stream: 'stdout' | 'stderr') => {
    for await (const line of child.iterable({ from: stream })) {
      kept[stream].push(`${line}\n`);
      options.onLine?.(line, stream);
    }
  };
  try {
    const [result] = await Promise.all([child, read('stdout').catch(ignoreEnded), read('stderr').catch(ignoreEnded)]);
    if (options.signal?.aborted) throw cancelled(options.signal.reason);
    if (timedOut)
      throw new RuntimeError('failed', `${program} did not end within ${options.timeoutSeconds} s and was ended.`);
    if (isSignalled(result) && (await isAborted(options.signal, SAME_SIGNAL_MS)))
      throw cancelled(options.signal!.reason);
    if (result.exitCode === undefined && result.code !== undefined)
      throw new RuntimeError(
        'failed',
        `${program} cannot be started (${result.code}): is it installed and on the PATH?`,
        result,
      );
    return { exitCode: result.exitCode ?? 128, stdout: kept.stdout.text(), stderr: kept.stderr.text() };
  } finally {
    clearTimeout(timer);
    options.signal?.removeEventListener('abort', endGroup);
  }
}

/** Milliseconds after a child's end by a signal within which the caller's own stop signal may arrive. */
const SAME_SIGNAL_MS = 1000;

/**
 * Returns whether a signal from outside ended the child or its program. A service manager may signal all processes of a service at once
 * (systemd does): a child may be gone before this process has stopped its work. That is not a failure of the child.
 */
const isSignalled = ({ signal, exitCode }: { signal?: string | undefined; exitCode?: number | undefined }): boolean =>
  ['SIGTERM', 'SIGINT', 'SIGHUP'].includes(signal ?? '') || [129, 130, 143].includes(exitCode ?? 0);

/** Waits for the abort of a signal, at most so many milliseconds. */
async function isAborted(signal: AbortSignal | undefined, ms: number): Promise<boolean> {
  if (signal && !signal.aborted) await sleep(ms, undefined, { signal }).catch(() => undefined);
  return signal?.aborted ?? false;
}

/** Ignores the error of an output iterator of a failed child: `await child` reports its end. */
function ignoreEnded(error: unknown): void {
  if (!(error instanceof Error && 'exitCode' in error)) throw error;
}

/** Runs a program that must succeed; a failure throws RuntimeError with the last lines of its output. */
export async function runChecked(
  program: string,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<CommandResult> {
  const result = await runCommand(program, args, options);
  if (result.exitCode === 0) return result;
  const last = (result.stderr || result.stdout).trim().split('\n').slice(-5).join('\n');
  throw new RuntimeError('failed', `${program} ended with status ${result.exitCode}: ${last}`);
}

/** Keeps the last bytes of a stream. */
class TailBuffer {
  #parts: string[] = [];
  #size = 0;
  readonly #limit: number;

  constructor(limit = 1 << 20) {
    this.#limit = limit;
  }

  push(part: string): void {
    this.#parts.push(part);
    this.#size += part.length;
    while (this.#size - (this.#parts[0]?.length ?? 0) > this.#limit) this.#size -= this.#parts.shift()!.length;
  }

  text(): string {
    return this.#parts.join('');
  }
}
