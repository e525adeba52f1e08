import { existsSync, watch, type FSWatcher } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { parseLine } from '#runtimes/tools/shim/log.ts';
import { openByIdentity, openLater, openOldest } from '#runtimes/tools/shim/log-files.ts';
import { LONGEST_LINE_BYTES, type LogEnd, type ShimLogLine } from '#runtimes/tools/shim/read-log.ts';
import { logFile } from '#runtimes/tools/shim/state.ts';

/** Number of bytes read at once. */
const CHUNK = 64 * 1024;
/** Milliseconds without an event of the folder after which its log is looked at anyway. */
const LOOK_MS = 1000;

/**
 * Yields new lines until the signal is aborted or the log's folder is removed: those behind `from`, else all that are kept. Reads each file to
 * its end however often the log is rotated; of files that rotations have removed before they were read, the lines are lost. Damaged lines are
 * left out.
 */
export async function* followShimLog(
  directory: string,
  signal: AbortSignal,
  from: LogEnd | null = null,
): AsyncGenerator<ShimLogLine> {
  const path = logFile(directory);
  const changes = new Changes(dirname(path), signal);
  const files = new Files(path);
  try {
    let { file, at } = await files.openAt(from);
    let cutter = new Lines();
    while (!signal.aborted) {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(CHUNK), 0, CHUNK, at);
      at += bytesRead;
      for (const text of cutter.cut(buffer.subarray(0, bytesRead))) {
        const line = parseLine(text);
        if (line !== null) yield line;
      }
      if (bytesRead > 0) continue;
      // A file that has a later one no longer grows: it is read to its end once more.
      const isLast = !files.hasLater;
      if (isLast && (await files.findLater())) continue;
      if (isLast && !existsSync(directory)) return;
      if (isLast) {
        await changes.next();
        continue;
      }
      file = await files.turn();
      at = 0;
      cutter = new Lines();
    }
  } finally {
    changes.close();
    await files.close();
  }
}

/** Files of a log, from one on: the present one and, once it was found, the one behind it. */
class Files {
  readonly #path: string;
  #present: FileHandle | null = null;
  #later: FileHandle | null = null;

  constructor(path: string) {
    this.#path = path;
  }

  get hasLater(): boolean {
    return this.#later !== null;
  }

  /** Opens the file of an end, which may be a rotated one by now, at its position; else the oldest file at its start. */
  async openAt(end: LogEnd | null): Promise<{ file: FileHandle; at: number }> {
    const found = end && (await openByIdentity(this.#path, end.file));
    this.#present = found ?? (await openOldest(this.#path));
    return { file: this.#present, at: found ? end!.size : 0 };
  }

  /** Returns whether there is a file behind the present one. */
  async findLater(): Promise<boolean> {
    this.#later ??= await openLater(this.#path, this.#present!);
    return this.#later !== null;
  }

  /** Goes on with the file behind the present one. */
  async turn(): Promise<FileHandle> {
    const read = this.#present;
    this.#present = this.#later;
    this.#later = null;
    await read?.close();
    return this.#present!;
  }

  async close(): Promise<void> {
    await Promise.all([this.#present?.close(), this.#later?.close()]);
  }
}

/** Cuts the bytes of a file into lines. A line at the end that is still being written goes on with the next bytes. */
class Lines {
  readonly #decoder = new TextDecoder();
  #rest = '';

  cut(bytes: Uint8Array): string[] {
    const lines = (this.#rest + this.#decoder.decode(bytes, { stream: true })).split('\n');
    this.#rest = lines.pop()!;
    // What is left of a line without its beginning is no JSON.
    if (this.#rest.length > LONGEST_LINE_BYTES) this.#rest = '\0';
    return lines;
  }
}

/** Waits for the folder to change. After a second without events it looks anyway, for file systems that send none. */
class Changes {
  readonly #watcher: FSWatcher | null;
  readonly #signal: AbortSignal;
  #wake: () => void = () => undefined;
  #pending = false;

  constructor(directory: string, signal: AbortSignal) {
    this.#signal = signal;
    this.#watcher = watchIfPossible(directory);
    this.#watcher?.on('change', this.#notify);
    this.#watcher?.on('error', this.#notify);
    signal.addEventListener('abort', this.#notify, { once: true });
  }

  readonly #notify = (): void => {
    this.#pending = true;
    this.#wake();
  };

  async next(): Promise<void> {
    if (!this.#pending) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, LOOK_MS);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.#pending = false;
  }

  close(): void {
    this.#signal.removeEventListener('abort', this.#notify);
    this.#watcher?.close();
  }
}

/** Watches a folder; null where the system has no watcher left, so that the folder is only looked at. Throws ENOENT for an absent one. */
function watchIfPossible(directory: string): FSWatcher | null {
  try {
    return watch(directory);
  } catch (error) {
    if (['ENOSPC', 'EMFILE'].includes((error as NodeJS.ErrnoException).code ?? '')) return null;
    throw error;
  }
}
