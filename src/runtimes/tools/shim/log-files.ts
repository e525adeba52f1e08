import { statSync, type BigIntStats } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';

/** Highest number of a rotated file that is looked for. */
const MOST_FILES = 9;

/** Returns the path of a log's file: the newest one has the number 0. */
const fileOf = (path: string, n: number): string => (n === 0 ? path : `${path}.${n}`);

/** Returns the identity of a file, which rotations keep. A file that is made later may get the number of a removed one, but not its time. */
export const identityOf = ({ ino, birthtimeNs }: BigIntStats): string => `${ino}.${birthtimeNs}`;

/** Returns the number that a file of a log has since rotations; null if it is gone. */
function numberOf(path: string, identity: string): number | null {
  for (let n = 0; n <= MOST_FILES; n++) {
    const stats = statSync(fileOf(path, n), { bigint: true, throwIfNoEntry: false });
    if (stats && identityOf(stats) === identity) return n;
  }
  return null;
}

/** Returns the first number of a file that is there, from `n` on. A rotation, and one that was cut off, leave numbers out. */
function firstNumber(path: string, n: number, step: 1 | -1): number | null {
  for (let at = n; at >= 0 && at <= MOST_FILES; at += step)
    if (statSync(fileOf(path, at), { throwIfNoEntry: false })) return at;
  return null;
}

/** Opens a file for reading; null if it is not there. */
async function openLogFile(path: string): Promise<FileHandle | null> {
  return open(path, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
}

/** Opens the oldest file of a log; makes an empty log where there is none yet. */
export async function openOldest(path: string): Promise<FileHandle> {
  for (;;) {
    const n = firstNumber(path, MOST_FILES, -1);
    if (n === null) return open(path, 'a+', 0o600);
    const file = await openLogFile(fileOf(path, n));
    // A rotation in between may have moved it, and a later one to its place.
    if (file && (n === MOST_FILES || firstNumber(path, n + 1, 1) === null)) return file;
    await file?.close();
  }
}

/** Opens a file of a log by its identity; null if it is gone. */
export async function openByIdentity(path: string, identity: string): Promise<FileHandle | null> {
  for (;;) {
    const n = numberOf(path, identity);
    if (n === null) return null;
    const file = await openLogFile(fileOf(path, n));
    if (file && identityOf(await file.stat({ bigint: true })) === identity) return file;
    await file?.close();
  }
}

/**
 * Opens the file that was begun after an open one, the oldest one if that was removed by rotations meanwhile. Null while there is no later one.
 */
export async function openLater(path: string, present: FileHandle): Promise<FileHandle | null> {
  const identity = identityOf(await present.stat({ bigint: true }));
  for (;;) {
    const n = numberOf(path, identity);
    if (n === null) return firstNumber(path, 0, 1) === null ? null : openOldest(path);
    const next = firstNumber(path, n - 1, -1);
    if (next === null) return null;
    const file = await openLogFile(fileOf(path, next));
    if (file && numberOf(path, identity) === n) return file;
    await file?.close();
  }
}

/** Opens the file that was written before an open one; null if there is none, or if rotations have removed it. */
export async function openEarlier(path: string, identity: string): Promise<FileHandle | null> {
  for (;;) {
    const n = numberOf(path, identity);
    const before = n === null ? null : firstNumber(path, n + 1, 1);
    if (before === null) return null;
    const file = await openLogFile(fileOf(path, before));
    if (file && numberOf(path, identity) === n) return file;
    await file?.close();
  }
}

/** Opens the newest file of a log; null if it has none. */
export async function openNewest(path: string): Promise<FileHandle | null> {
  for (;;) {
    const n = firstNumber(path, 0, 1);
    if (n === null) return null;
    const file = await openLogFile(fileOf(path, n));
    if (file) return file;
  }
}
