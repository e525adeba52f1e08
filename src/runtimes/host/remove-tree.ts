import { chmodSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { kindOf } from '#runtimes/host/view/root-path.ts';

/**
 * Removes a folder with everything in it; succeeds if absent. Overlayfs and programs (Go's module cache) leave folders that their own owner
 * may not enter or change: those are opened first if the removal fails.
 */
export function removeTree(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch (error) {
    if (!['EACCES', 'EPERM', 'ENOTEMPTY'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    openFolders(path);
    rmSync(path, { recursive: true, force: true });
  }
}

function openFolders(path: string): void {
  if (kindOf(path) !== 'directory') return;
  chmodSync(path, 0o700);
  for (const entry of readdirSync(path, { withFileTypes: true }))
    if (entry.isDirectory()) openFolders(join(path, entry.name));
}
