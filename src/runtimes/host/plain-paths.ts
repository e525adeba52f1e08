import { chmodSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { runCommand } from '#runtimes/tools/command.ts';
import { RuntimeError } from '#runtimes/runtime.ts';
import { isWithin, resolveInRoot } from '#runtimes/host/view/root-path.ts';

/**
 * Absolute paths without namespaces. Paths under a WORKDIR of the Dockerfile stand for folders of the tree; all others would be the
 * machine's own and are refused by name.
 */
export class PlainPaths {
  readonly tree: string;
  readonly workdirs: string[];

  constructor(tree: string, workdirs: readonly string[]) {
    this.tree = tree;
    this.workdirs = [...workdirs];
  }

  /** Returns whether a path stands for one in the tree. */
  holds(path: string): boolean {
    return this.workdirs.some((workdir) => workdir !== '/' && isWithin(workdir, path));
  }

  /** Throws RuntimeError `refused` unless the path stands for one in the tree. */
  require(path: string, what: string): void {
    if (!this.holds(path.replace(/(.)\/$/, '$1')))
      throw new RuntimeError(
        'refused',
        `${what} needs ${path}: without namespaces only paths below a WORKDIR other than / can be used on this machine.`,
      );
  }

  /** Returns the real path of a path in the tree. */
  real(path: string): string {
    return resolveInRoot(this.tree, path);
  }

  /** Replaces paths below a WORKDIR in a text by those of the tree. */
  map(text: string, what: string): string {
    let mapped = text;
    for (const workdir of new Set(this.workdirs)) {
      if (workdir === '/') continue;
      const named = new RegExp(`(^|[\\s"'=:(,])${escapePattern(workdir)}(?=$|[\\s"'/:;,)])`, 'g');
      if (named.test(mapped) && /[^\w./-]/.test(this.tree))
        throw new RuntimeError(
          'refused',
          `${what} names ${workdir}, but the data directory has blanks or signs in its name.`,
        );
      mapped = mapped.replace(named, (_, before: string) => `${before}${this.tree}${workdir}`);
    }
    return mapped;
  }
}

const escapePattern = (text: string) => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');

/**
 * Opens the data folders so that workloads' accounts reach their own (mode 0711; files keep 0600). Only for plain folders as root: views
 * need no path through the machine. Throws RuntimeError `refused` if a parent folder of the data directory is closed.
 */
export async function openWay(dataDir: string, folder: string, uid: number): Promise<void> {
  const names = relative(dataDir, folder).split('/');
  for (let depth = 0; depth <= names.length; depth++) {
    const path = join(dataDir, ...names.slice(0, depth));
    chmodSync(path, (statSync(path).mode & 0o777) | 0o011);
  }
  const reached = await runCommand('test', ['-x', folder], { uid, gid: uid, cwd: '/' });
  if (reached.exitCode !== 0)
    throw new RuntimeError(
      'refused',
      `The data directory ${dataDir} lies below a folder that other accounts may not enter; without namespaces workloads need that (chmod o+x, or another data directory).`,
    );
}
