import { readFile, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import dockerignore from '@balena/dockerignore';

/**
 * Reads the first of the files that is there; returns whether its rules exclude a path, which is relative to the build context. Without a
 * file the rules of `otherwise` hold. A file may be a link to another one within `root`. Throws Error for one that leads out of it.
 */
export async function readIgnoreRules(
  root: string,
  files: readonly string[],
  otherwise = '',
): Promise<(path: string) => boolean> {
  const top = await realpath(root);
  for (const file of files) {
    const real = await realpath(file).catch(absent);
    if (real === null) continue;
    if (!real.startsWith(top === path.sep ? top : top + path.sep))
      throw new Error(`${path.basename(file)} is a link that leads out of the folder: replace it by the file.`);
    if (!(await stat(real)).isFile()) continue;
    return rulesOf(await readFile(real, 'utf8'));
  }
  return rulesOf(otherwise);
}

function rulesOf(text: string): (path: string) => boolean {
  const rules = dockerignore.default().add(text);
  return (name) => rules.ignores(name);
}

function absent(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null;
  throw error;
}
