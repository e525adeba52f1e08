import {
  closeSync,
  createWriteStream,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  type WriteStream,
} from 'node:fs';

export interface WriteOptions {
  mode?: number;
  /** True for what is lost without a remedy: the file is on the disk before it takes the place of the old one. */
  isSynced?: boolean;
}

/** Replaces a file so that a reader sees the old content or the new one, never a part. A failure leaves no file behind. */
export function writeAtomically(
  path: string,
  content: string,
  { mode = 0o600, isSynced = false }: WriteOptions = {},
): void {
  const temporary = `${path}.${process.pid}.new`;
  try {
    // One that a killed process with the same number left may have another mode.
    rmSync(temporary, { force: true });
    const descriptor = openSync(temporary, 'wx', mode);
    try {
      writeFileSync(descriptor, content);
      if (isSynced) fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

/**
 * Makes a file that is not there yet, and returns its writer. The file is there when this returns: a writer of Node's own makes it later,
 * perhaps after its content has failed and the file was removed.
 */
export const openNew = (path: string): WriteStream => createWriteStream(path, { fd: openSync(path, 'wx', 0o600) });

/** Reads a JSON file; null if absent. */
export function readJson<T>(path: string): T | null {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as T;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/** Makes a directory that only this account can read, and its parents. */
export function makePrivate(directory: string): void {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
}
