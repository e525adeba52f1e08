import { open, type FileHandle } from 'node:fs/promises';
import { parseLine, type LoggedLine } from '#runtimes/tools/shim/log.ts';
import { identityOf } from '#runtimes/tools/shim/log-files.ts';
import { LONGEST_LINE_BYTES } from '#runtimes/tools/shim/read-log.ts';
import { logFile } from '#runtimes/tools/shim/state.ts';

/** Number of rotated files to look for, besides the present one. */
const MOST_FILES = 10;
const NEWLINE = 0x0a;
/** Bytes that are read at once; a line that is longer is none that a shim writes, and is left out. */
const CHUNK = LONGEST_LINE_BYTES;

interface OpenFile {
  file: FileHandle;
  identity: string;
}

/** Reads a shim's log from the oldest kept line, each line once, over several calls. */
export class WholeLog {
  readonly #path: string;
  /** Bytes that were read of each file that is there, by its identity. */
  #read = new Map<string, number>();

  constructor(directory: string) {
    this.#path = logFile(directory);
  }

  /** Yields the lines since the last call, oldest first. */
  async *next(): AsyncGenerator<LoggedLine> {
    const files = await this.#open();
    try {
      for (const file of files) yield* this.#rest(file);
      this.#read = new Map(files.map(({ identity }) => [identity, this.#read.get(identity)!]));
    } finally {
      await closeAll(files);
    }
  }

  /** Opens all files, the oldest first; opens them again after a rotation meanwhile, so that none is omitted. */
  async #open(): Promise<OpenFile[]> {
    for (;;) {
      const files = await this.#openOnce();
      const present = await openFile(this.#path);
      const same = present?.identity === files.at(-1)?.identity;
      await present?.file.close();
      if (same) return files;
      await closeAll(files);
    }
  }

  async #openOnce(): Promise<OpenFile[]> {
    const files: OpenFile[] = [];
    for (let n = 0; n < MOST_FILES; n++) {
      const file = await openFile(n === 0 ? this.#path : `${this.#path}.${n}`);
      // A rotation leaves numbers out: files move upwards one after the other, as they are opened here.
      if (file) files.unshift(file);
    }
    return files;
  }

  /** Yields the rest of a file without damaged lines. The shim writes whole lines; an unfinished line is left for the next call. */
  async *#rest({ file, identity }: OpenFile): AsyncGenerator<LoggedLine> {
    let at = this.#read.get(identity) ?? 0;
    this.#read.set(identity, at);
    const part = Buffer.alloc(CHUNK);
    for (;;) {
      const { bytesRead } = await file.read(part, 0, CHUNK, at);
      const end = part.subarray(0, bytesRead).lastIndexOf(NEWLINE) + 1;
      const isTooLong = end === 0 && bytesRead === CHUNK;
      if (end === 0 && !isTooLong) return;
      at += isTooLong ? bytesRead : end;
      this.#read.set(identity, at);
      for (const text of part.toString('utf8', 0, end).split('\n').slice(0, -1)) {
        const line = parseLine(text);
        if (line !== null) yield line;
      }
    }
  }
}

const closeAll = (files: readonly OpenFile[]) => Promise.all(files.map(({ file }) => file.close()));

async function openFile(path: string): Promise<OpenFile | null> {
  try {
    const file = await open(path, 'r');
    return { file, identity: identityOf(await file.stat({ bigint: true })) };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
