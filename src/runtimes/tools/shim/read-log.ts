import { closeSync, fstatSync, openSync, readSync, watch } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { LoggedLine } from '#runtimes/tools/shim/log.ts';
import { logFile } from '#runtimes/tools/shim/state.ts';

export type ShimLogLine = LoggedLine;

/** Number of bytes read at once from the end of a log file. */
const CHUNK = 64 * 1024;

/** Returns the last `tail` lines of a shim's log, rotated files included, oldest first. Reads no more of the files than needed. */
export function readShimLog(directory: string, tail: number): ShimLogLine[] {
  const lines: string[] = [];
  for (let n = 0; lines.length < tail; n++) {
    const found = lastLines(n === 0 ? logFile(directory) : `${logFile(directory)}.${n}`, tail - lines.length);
    // The newest file is missing for a moment during a rotation.
    if (found === null && n > 0) break;
    lines.unshift(...(found ?? []));
  }
  return lines.map((line) => JSON.parse(line) as ShimLogLine);
}

/** Returns the last lines of a file; null if absent. */
function lastLines(path: string, count: number): string[] | null {
  const fd = openIfThere(path);
  if (fd === null) return null;
  try {
    const parts: Buffer[] = [];
    let at = fstatSync(fd).size;
    let newlines = 0;
    while (at > 0 && newlines <= count) {
      const part = Buffer.alloc(Math.min(CHUNK, at));
      at -= part.length;
      readSync(fd, part, 0, part.length, at);
      for (const byte of part) if (byte === 0x0a) newlines++;
      parts.unshift(part);
    }
    const lines = Buffer.concat(parts).toString('utf8').split('\n');
    lines.pop();
    return lines.slice(-count);
  } finally {
    closeSync(fd);
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
