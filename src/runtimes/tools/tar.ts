import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { anySignal } from '#kernel/lease-signal.ts';
import { RuntimeError } from '#runtimes/runtime.ts';
import { DEFAULT_PATH, runCommand } from '#runtimes/tools/command.ts';

/** Seconds without a byte after which tar counts as hung: its disk does not answer. */
const SILENT_SECONDS = 300;

/** Attributes of any kind are kept; only root may read and write all of them. */
const ATTRIBUTES = ['--xattrs', '--xattrs-include=*', '--acls', '--numeric-owner'];

/** Program and arguments that stand before tar, such as `unshare`. */
type Prefix = readonly string[];

/** Returns why the machine's tar cannot be used, as a sentence that names the remedy; null if it can. */
export async function refusalOfTar(): Promise<string | null> {
  const { exitCode, stdout } = await runCommand('tar', ['--version'], { timeoutSeconds: 10 }).catch(() => ({
    exitCode: 127,
    stdout: '',
  }));
  return exitCode === 0 && stdout.includes('GNU tar')
    ? null
    : 'Volumes of the host runtime are read and written by GNU tar, which this machine lacks: install the package tar.';
}

/** Streams a folder as a tar archive; holes of sparse files take no room. Throws RuntimeError, also if a file changes meanwhile. */
export async function* readTree(folder: string, signal: AbortSignal, prefix: Prefix = []): AsyncGenerator<Buffer> {
  const pax = '--pax-option=delete=atime,delete=ctime';
  const args = ['--create', '--file=-', '--format=posix', pax, '--sparse', ...ATTRIBUTES, `--directory=${folder}`, '.'];
  const tar = start([...prefix, 'tar', ...args], signal);
  try {
    for await (const chunk of tar.child.stdout) {
      tar.live();
      yield chunk as Buffer;
      tar.live();
    }
    await tar.end();
  } finally {
    tar.kill();
  }
}

/** Unpacks what `readTree` streamed into an empty folder. Names that lead out of it are refused by tar. Throws RuntimeError. */
export async function writeTree(
  folder: string,
  archive: AsyncIterable<Buffer>,
  signal: AbortSignal,
  prefix: Prefix = [],
): Promise<void> {
  const args = ['--extract', '--file=-', '--preserve-permissions', ...ATTRIBUTES, `--directory=${folder}`];
  const tar = start([...prefix, 'tar', ...args], signal);
  try {
    const { stdin } = tar.child;
    for await (const chunk of archive) {
      tar.live();
      // Tar ends with the mark of the archive's end, and leaves the zeros behind it; one that has failed says why.
      if (stdin.destroyed) await tar.end();
      else if (!stdin.write(chunk)) await tar.turn('drain');
    }
    stdin.end();
    await tar.end();
  } finally {
    tar.kill();
  }
}

/** Running tar. */
interface RunningTar {
  child: ChildProcessByStdio<Writable, Readable, Readable>;
  /** Begins the time anew after which it counts as hung. */
  live(): void;
  /** Waits for an event of its input, or for its end. */
  turn(event: string): Promise<void>;
  /** Waits for its end. Throws RuntimeError unless it succeeded. */
  end(): Promise<void>;
  kill(): void;
}

function start([program, ...args]: string[], signal: AbortSignal): RunningTar {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), SILENT_SECONDS * 1000);
  const child = spawn(program!, args, {
    env: { PATH: DEFAULT_PATH, LC_ALL: 'C' },
    stdio: ['pipe', 'pipe', 'pipe'],
    signal: anySignal([signal, late.signal]),
    killSignal: 'SIGKILL',
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-2000)));
  let failure: Error | undefined;
  child.on('error', (error) => (failure = error));
  child.stdin.on('error', () => undefined); // `end` tells why it is closed.
  const closed = once(child, 'close') as Promise<[number | null]>;
  closed.catch(() => undefined); // The event `error` has the reason.
  return {
    child,
    live: () => timer.refresh(),
    turn: async (event) => {
      const over = new AbortController();
      const happened = once(child.stdin, event, { signal: over.signal });
      await Promise.race([happened, once(child.stdin, 'close', { signal: over.signal }), closed]).catch(
        () => undefined,
      );
      over.abort();
    },
    end: async () => {
      const [status] = await closed.catch((): [null] => [null]);
      signal.throwIfAborted();
      if (late.signal.aborted)
        throw new RuntimeError('failed', `tar did nothing for ${SILENT_SECONDS} s: look whether its disk answers.`);
      if (status !== 0)
        throw new RuntimeError('failed', `tar failed: ${(said.trim() || failure?.message) ?? `status ${status}`}`);
    },
    kill: () => {
      clearTimeout(timer);
      child.kill('SIGKILL');
    },
  };
}
