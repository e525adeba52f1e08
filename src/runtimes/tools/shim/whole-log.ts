import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import type { LoggedLine } from '#runtimes/tools/shim/log.ts';
import { logFile } from '#runtimes/tools/shim/state.ts';

/** Rotated files that are looked for besides the present one. */
const MOST_FILES = 10;
const NEWLINE = 0x0a;

interface OpenFile {
  fd: number;
  inode: number;
}

/** Reads a shim's log from the oldest line that is kept, each line once, whenever it is asked. */
export class WholeLog {
  readonly #path: string;
  /** Bytes that were read of a file, by its inode: files keep theirs when they are rotated. */
  readonly #read = new Map<number, number>();

  constructor(directory: string) {
    this.#path = logFile(directory);
  }

  /** The lines that came since the last call, oldest first. */
  next(): LoggedLine[] {
    const files = this.#open();
    try {
      return files.flatMap((file) => this.#rest(file));
    } finally {
      for (const { fd } of files) closeSync(fd);
    }
  }

  /** All files, the oldest first: opened again where they were rotated meanwhile, so that none is left out. */
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

  /** The shim writes whole lines; what has no end yet is left for the next time. */
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
