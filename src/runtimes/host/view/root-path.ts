import { lstatSync, mkdirSync, readlinkSync } from 'node:fs';
import { join, posix } from 'node:path';

/** Number of links after which a path counts as a circle, as in the kernel. */
const MOST_LINKS = 40;

/**
 * Resolves a path as a process whose root is `root` sees it: links are followed inside the root only, and `..` ends at it. Absent parts are
 * taken as written. The tree must not change meanwhile (no process runs in it).
 */
export function resolveInRoot(root: string, path: string): string {
  const todo = parts(path);
  const done: string[] = [];
  let links = 0;
  while (todo.length) {
    const name = todo.shift()!;
    if (name === '..') {
      done.pop();
      continue;
    }
    const target = linkTarget(join(root, ...done, name));
    if (target === null) {
      done.push(name);
      continue;
    }
    if (++links > MOST_LINKS) throw new Error(`${path}: too many links`);
    if (posix.isAbsolute(target)) done.length = 0;
    todo.unshift(...parts(target));
  }
  return join(root, ...done);
}

/** Makes a folder and its parents inside the root; returns its real path. */
export function makeInRoot(root: string, path: string): string {
  const real = resolveInRoot(root, path);
  mkdirSync(real, { recursive: true, mode: 0o755 });
  return real;
}

/** Returns whether a path is the folder or lies in it. Both are real and absolute. */
export function isWithin(folder: string, path: string): boolean {
  return path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`);
}

/** Returns the kind of the file at a path, without following a link; null if there is none. */
export function kindOf(path: string): 'directory' | 'file' | 'link' | 'other' | null {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (!stat) return null;
  if (stat.isDirectory()) return 'directory';
  if (stat.isSymbolicLink()) return 'link';
  return stat.isFile() ? 'file' : 'other';
}

const parts = (path: string) => path.split('/').filter((part) => part !== '' && part !== '.');

function linkTarget(path: string): string | null {
  return kindOf(path) === 'link' ? readlinkSync(path) : null;
}
