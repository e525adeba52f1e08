import { closeSync, constants, fstatSync, lstatSync, opendirSync, openSync, type Dir, type Stats } from 'node:fs';
import { dirname, join } from 'node:path';

/** Disk that a tree takes. */
export interface TreeSize {
  /** Bytes of blocks, at least `LEAST_BYTES` for each file. */
  bytes: number;
  /** Files, folders and links. */
  files: number;
  /** True if the tree was measured completely; otherwise `bytes` is a lower bound. */
  isWhole: boolean;
}

/** Minimum of bytes that a file counts for: file systems run out of inodes as they run out of blocks, and an empty file takes one. */
export const LEAST_BYTES = 4096;

/** Number of files between two checks of the time. */
const LOOK_EVERY = 256;
const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** Errors of files that are removed or exchanged during the walk. */
const GONE = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ESTALE']);

/** Folder on the way down. */
interface Level {
  name: string;
  dev: number;
  ino: number;
  /** Names of its folders that were not entered yet. */
  waiting: string[];
}

/**
 * Measures a path without following links or entering other file systems, until `isLate`. The tree's owner may change it meanwhile and make
 * it arbitrarily deep and wide: each folder is opened from its parent, so that no path gets too long and no exchanged folder leads out. A
 * file with several links counts a share for each of them, and a sparse file its blocks.
 */
export function walkTree(root: string, isLate: () => boolean, size: TreeSize = emptySize()): TreeSize {
  const top = lookAt(root);
  if (top === null) return size;
  count(size, top);
  if (!top.isDirectory()) return size;
  const position = openFolder(root);
  if (position === null) size.isWhole = false;
  else new Walk(position, top, isLate, size).run();
  return size;
}

export const emptySize = (): TreeSize => ({ bytes: 0, files: 0, isWhole: true });

/** Opened folder, and the path under which its entries are reached. */
interface Position {
  fd: number;
  path: string;
}

/** Returns the position of an open folder. Linux reaches its entries by the descriptor, however long the path is. */
const positionOf = (fd: number, path: string): Position => ({
  fd,
  path: process.platform === 'linux' ? `/proc/self/fd/${fd}` : path,
});

function openFolder(path: string): Position | null {
  try {
    return positionOf(openSync(path, FOLDER), path);
  } catch (error) {
    return unreadable(error);
  }
}

/** Returns null for a file that is gone, may not be read, or has too long a path; throws any other error. */
function unreadable(error: unknown): null {
  const { code = '' } = error as NodeJS.ErrnoException;
  if (GONE.has(code) || ['EACCES', 'EPERM', 'ENAMETOOLONG', 'EIO'].includes(code)) return null;
  throw error;
}

function lookAt(path: string): Stats | null {
  try {
    return lstatSync(path);
  } catch (error) {
    return unreadable(error);
  }
}

function count(size: TreeSize, stats: Stats): void {
  const links = stats.isDirectory() ? 1 : Math.max(1, stats.nlink);
  size.bytes += Math.max(stats.blocks * 512, LEAST_BYTES) / links;
  size.files += 1;
}

/** Depth-first walk that has one folder open at a time, besides the root. */
class Walk {
  readonly #root: Position;
  readonly #levels: Level[];
  readonly #device: number;
  readonly #isLate: () => boolean;
  readonly #size: TreeSize;
  #here: Position;

  constructor(root: Position, top: Stats, isLate: () => boolean, size: TreeSize) {
    this.#root = root;
    this.#here = root;
    this.#levels = [{ name: '.', dev: top.dev, ino: top.ino, waiting: [] }];
    this.#device = top.dev;
    this.#isLate = isLate;
    this.#size = size;
  }

  run(): void {
    try {
      this.#readEntries();
      while (!this.#isLate()) {
        const name = this.#levels.at(-1)!.waiting.pop();
        if (name !== undefined) this.#enter(name);
        else if (this.#levels.length === 1) return;
        else this.#leave();
      }
      this.#size.isWhole = false;
    } finally {
      this.#moveTo(this.#root);
      closeSync(this.#root.fd);
    }
  }

  #moveTo(position: Position): void {
    if (this.#here !== this.#root) closeSync(this.#here.fd);
    this.#here = position;
  }

  #enter(name: string): void {
    const path = join(this.#here.path, name);
    const below = openFolder(path);
    if (below === null) {
      // The folder is closed to this account, or was removed and counts nothing.
      if (lookAt(path) !== null) this.#size.isWhole = false;
      return;
    }
    const { dev, ino } = fstatSync(below.fd);
    if (dev !== this.#device) return closeSync(below.fd);
    this.#moveTo(below);
    this.#levels.push({ name, dev, ino, waiting: [] });
    this.#readEntries();
  }

  #leave(): void {
    this.#levels.pop();
    const path = process.platform === 'linux' ? `${this.#here.path}/..` : dirname(this.#here.path);
    const above = openFolder(path);
    if (above !== null) this.#moveTo(above);
    if (above === null || !isAt(above, this.#levels.at(-1)!)) this.#descendAgain();
  }

  /** Descends from the root to the deepest folder that is still in its place: one of the folders was moved away. */
  #descendAgain(): void {
    this.#size.isWhole = false;
    this.#moveTo(this.#root);
    for (const [depth, level] of this.#levels.entries()) {
      if (depth === 0) continue;
      const below = openFolder(join(this.#here.path, level.name));
      if (below !== null && isAt(below, level)) {
        this.#moveTo(below);
        continue;
      }
      if (below !== null) closeSync(below.fd);
      this.#levels.length = depth;
      return;
    }
  }

  /** Measures the entries of the folder, a part of its names at a time, and notes its folders. */
  #readEntries(): void {
    const { waiting } = this.#levels.at(-1)!;
    let folder: Dir;
    try {
      folder = opendirSync(this.#here.path, { bufferSize: LOOK_EVERY });
    } catch (error) {
      unreadable(error);
      this.#size.isWhole = false;
      return;
    }
    try {
      for (let seen = 1; ; seen++) {
        const entry = folder.readSync();
        if (entry === null) return;
        // The next check of the time ends the walk.
        if (seen % LOOK_EVERY === 0 && this.#isLate()) return;
        const stats = lookAt(join(this.#here.path, entry.name));
        if (stats === null || stats.dev !== this.#device) continue;
        count(this.#size, stats);
        if (stats.isDirectory()) waiting.push(entry.name);
      }
    } finally {
      folder.closeSync();
    }
  }
}

function isAt({ fd }: Position, { dev, ino }: Level): boolean {
  const stats = fstatSync(fd);
  return stats.dev === dev && stats.ino === ino;
}
