import { closeSync, fstatSync, openSync, readSync, watch } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { LogWindow } from '#runtimes/tools/log-window.ts';
import type { LoggedLine } from '#runtimes/tools/shim/log.ts';
import { logFile } from '#runtimes/tools/shim/state.ts';

export type ShimLogLine = LoggedLine;

/** Number of bytes read at once from the end of a log file. */
const CHUNK = 64 * 1024;
const NEWLINE = 0x0a;

/**
 * Returns the last `tail` lines of a window of a shim's log, rotated files included, oldest first. Reads no more of the files than needed.
 */
export function readShimLog(directory: string, tail: number, window: LogWindow = {}): ShimLogLine[] {
  const { from = '', to } = window;
  const lines: ShimLogLine[] = [];
  if (tail < 1) return lines;
  for (const text of linesFromEnd(logFile(directory))) {
    const line = JSON.parse(text) as ShimLogLine;
    if (line.time < from) break;
    if (to === undefined || line.time < to) lines.push(line);
    if (lines.length === tail) break;
  }
  return lines.reverse();
}

/** Yields the lines of a log and its rotated files, newest first. */
function* linesFromEnd(path: string): Generator<string> {
  for (let n = 0; ; n++) {
    const fd = openIfThere(n === 0 ? path : `${path}.${n}`);
    // The newest file is missing for a moment during a rotation.
    if (fd === null && n > 0) return;
    if (fd === null) continue;
    try {
      yield* fileFromEnd(fd);
    } finally {
      closeSync(fd);
    }
  }
}

/** Yields the lines of a file, newest first, without a line at the end that is still being written. */
function* fileFromEnd(fd: number): Generator<string> {
  let at = fstatSync(fd).size;
  /** Beginning of a line whose rest was read, with its line end; at first, what follows the last line end. */
  let head = Buffer.alloc(0);
  while (at > 0) {
    const part = Buffer.alloc(Math.min(CHUNK, at));
    at -= part.length;
    readSync(fd, part, 0, part.length, at);
    const bytes = Buffer.concat([part, head]);
    const start = at === 0 ? 0 : bytes.indexOf(NEWLINE) + 1;
    const isCut = at > 0 && start === 0;
    head = isCut ? bytes : bytes.subarray(0, start);
    if (!isCut) yield* bytes.toString('utf8', start).split('\n').slice(0, -1).reverse();
  }
}

function openIfThere(path: string): number | null {
  try {
    return openSync(path, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/**
 * Yields new lines until the signal is aborted; with `fromStart` also the earlier lines of the present file. Follows the file through
 * rotations. The shim writes whole lines: a partial line at the end of a read continues in the next one.
 */
export async function* followShimLog(
  directory: string,
  signal: AbortSignal,
  fromStart = false,
): AsyncGenerator<ShimLogLine> {
  const path = logFile(directory);
  let file = await open(path, 'a+');
  let at = fromStart ? 0 : (await file.stat()).size;
  let rest = '';
  /** Successor of `file` after a rotation, read once `file`, which no longer grows, was read to its end. */
  let next: Awaited<ReturnType<typeof reopenWhenRotated>> = null;
  let decoder = new TextDecoder();
  const changes = new Changes(dirname(path), signal);
  try {
    while (!signal.aborted) {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(CHUNK), 0, CHUNK, at);
      if (bytesRead > 0) {
        at += bytesRead;
        const lines = (rest + decoder.decode(buffer.subarray(0, bytesRead), { stream: true })).split('\n');
        rest = lines.pop()!;
        for (const line of lines) yield JSON.parse(line) as ShimLogLine;
        continue;
      }
      if (!next) {
        next = await reopenWhenRotated(file, path);
        if (!next) await changes.next();
        continue;
      }
      await file.close();
      file = next;
      next = null;
      decoder = new TextDecoder();
      at = 0;
    }
  } finally {
    changes.close();
    await file.close();
  }
}

async function reopenWhenRotated(file: Awaited<ReturnType<typeof open>>, path: string) {
  const next = await open(path, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  if (next === null) return null;
  const [old, present] = await Promise.all([file.stat(), next.stat()]);
  if (old.ino !== present.ino) return next;
  await next.close();
  return null;
}

/** Waits for the folder to change. After a second without events it looks anyway, for file systems that send none. */
class Changes {
  readonly #watcher;
  #wake: () => void = () => undefined;
  #pending = false;

  constructor(directory: string, signal: AbortSignal) {
    this.#watcher = watch(directory, () => this.#notify());
    this.#watcher.on('error', () => this.#notify());
    signal.addEventListener('abort', () => this.#notify(), { once: true });
  }

  #notify(): void {
    this.#pending = true;
    this.#wake();
  }

  async next(): Promise<void> {
    if (!this.#pending) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 1000);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.#pending = false;
  }

  close(): void {
    this.#watcher.close();
  }
}
