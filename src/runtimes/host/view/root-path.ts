import { lstatSync, mkdirSync, readlinkSync } from 'node:fs';
import { join, posix } from 'node:path';

/** Links followed before a path counts as a circle, as in the kernel. */
const MOST_LINKS = 40;

/**
 * The real path of `path` as a process whose root is `root` sees it: links are followed inside the root only, and `..` ends at
 * it. What isn't there is taken as written. Nothing may change the tree meanwhile (no process runs in it when this is used).
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

/** Makes a folder and those above it inside the root; answers its real path. */
export function makeInRoot(root: string, path: string): string {
  const real = resolveInRoot(root, path);
  mkdirSync(real, { recursive: true, mode: 0o755 });
  return real;
}

/** Whether a path is the folder or lies in it. Both are real and absolute. */
export function isWithin(folder: string, path: string): boolean {
  return path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`);
}

/** Kind of what is at a path, without following a link; null when there is nothing. */
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
