import { accessSync, constants, lstatSync, realpathSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { DEFAULT_PATH } from '#runtimes/tools/command.ts';

/** Returns the absolute path of a program of the machine; null if it has none. */
export function findProgram(name: string, path: string = DEFAULT_PATH): string | null {
  return (
    path
      .split(delimiter)
      .map((folder) => join(folder, name))
      .find(isExecutable) ?? null
  );
}

const isExecutable = (path: string): boolean => mayUse(path, constants.X_OK) && lstatSync(realpathSync(path)).isFile();

/** Returns whether this account may use a path in the given way; false for an absent path. */
export function mayUse(path: string, how: number): boolean {
  try {
    accessSync(path, how);
    return true;
  } catch (error) {
    if (['ENOENT', 'EACCES', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return false;
    throw error;
  }
}
