import { renameSync } from 'node:fs';
import { removeTree } from '#runtimes/host/remove-tree.ts';

/** Gives a finished folder its final path; if another process was faster, its folder stays, which has the same content. */
export function publishFolder(making: string, path: string): void {
  try {
    renameSync(making, path);
  } catch (error) {
    if (!['ENOTEMPTY', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    removeTree(making);
  }
}
