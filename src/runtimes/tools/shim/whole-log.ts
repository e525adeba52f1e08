import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import type { LoggedLine } from '#runtimes/tools/shim/log.ts';
import { logFile } from '#runtimes/tools/shim/state.ts';

/** Number of rotated files to look for, besides the present one. */
const MOST_FILES = 10;
const NEWLINE = 0x0a;

interface OpenFile {
  fd: number;
  inode: number;
}

/** Reads a shim's log from the oldest kept line, each line once, over several calls. */
export class WholeLog {
  readonly #path: string;
  /** Bytes that were read of a file, by its inode: a rotation keeps it. */
  readonly #read = new Map<number, number>();

  constructor(directory: string) {
    this.#path = logFile(directory);
  }

  /** Returns the lines since the last call, oldest first. */
  next(): LoggedLine[] {
    const files = this.#open();
    try {
      return files.flatMap((file) => this.#rest(file));
    } finally {
      for (const { fd } of files) closeSync(fd);
    }
  }

  /** Opens all files, the oldest first; opens them again after a rotation meanwhile, so that none is omitted. */
  #open(): OpenFile[] {
    for (;;) {
      const files = this.#openOnce();
      const present = openFile(this.#path);
      const same = present?.inode === files.at(-1)?.inode;
      if (present) closeSync(present.fd);
      if (same) return files;
      for (const { fd } of files) closeSync(fd);
    }
  }

  #openOnce(): OpenFile[] {
    const files: OpenFile[] = [];
    for (let n = 0; n < MOST_FILES; n++) {
      const file = openFile(n === 0 ? this.#path : `${this.#path}.${n}`);
      if (file) files.unshift(file);
      else if (n > 0) break;
    }
    return files;
  }

  /** Reads the rest of a file. The shim writes whole lines; an unfinished line is left for the next call. */
  #rest({ fd, inode }: OpenFile): LoggedLine[] {
    const from = this.#read.get(inode) ?? 0;
    const bytes = Buffer.alloc(Math.max(0, fstatSync(fd).size - from));
    const length = readSync(fd, bytes, 0, bytes.length, from);
    const end = bytes.subarray(0, length).lastIndexOf(NEWLINE) + 1;
    this.#read.set(inode, from + end);
    const lines = bytes.toString('utf8', 0, end).split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line) as LoggedLine);
  }
}

function openFile(path: string): OpenFile | null {
  try {
    const fd = openSync(path, 'r');
    return { fd, inode: fstatSync(fd).ino };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
