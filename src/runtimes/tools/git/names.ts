import path from 'node:path';
import { RuntimeError } from '#runtimes/runtime.ts';

/** Throws unless git accepts the name for a branch or tag (git-check-ref-format). */
export function checkBranch(branch: string): void {
  const bad =
    branch === '' ||
    branch.length > 255 ||
    branch === '@' ||
    branch.startsWith('-') ||
    branch.startsWith('/') ||
    branch.endsWith('/') ||
    branch.endsWith('.') ||
    branch.includes('..') ||
    branch.includes('@{') ||
    branch.includes('//') ||
    /[\p{Cc} ~^:?*[\\]/u.test(branch) ||
    branch.split('/').some((part) => part.startsWith('.') || part.endsWith('.lock'));
  if (bad) throw new RuntimeError('refused', `${JSON.stringify(branch.slice(0, 100))} is not the name of a branch.`);
}

/** Throws unless the text is a commit: 7 to 40 hexadecimal digits. */
export function checkCommit(commit: string): void {
  if (!/^[0-9a-f]{7,40}$/.test(commit))
    throw new RuntimeError(
      'refused',
      `${JSON.stringify(commit.slice(0, 100))} is not a commit: must be 7 to 40 hexadecimal digits.`,
    );
}

/** Returns the path of a file within a repository in git's form; throws if it leads out of its base folder. */
export function insidePath(prefix: string, file: string): string {
  const normal = path.posix.normalize(`./${file}`);
  if (file.includes('\0') || normal === '..' || normal.startsWith('../'))
    throw new RuntimeError('refused', `The path ${JSON.stringify(file.slice(0, 200))} leads out of the repository.`);
  return path.posix.join(prefix, normal);
}

/** Returns the names by which a server knows a branch or tag. The branch is first: it wins if both exist. */
export const refsOf = (branch: string): string[] =>
  branch === 'HEAD' || branch.startsWith('refs/') ? [branch] : [`refs/heads/${branch}`, `refs/tags/${branch}`];
