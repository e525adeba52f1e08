import { existsSync, realpathSync, statSync } from 'node:fs';
import path from 'node:path';
import { RuntimeError } from '#runtimes/runtime.ts';

/** Where a repository is, after the policy has let it pass. */
export interface GitLocation {
  /** What git is given. */
  url: string;
  kind: 'https' | 'http' | 'ssh' | 'local';
  /** Host that is connected to; null for a local folder. */
  host: string | null;
}

const SCP_FORM = /^([\w.-]+)@([\w.-]+):((?!\/\/)[^-].*)$/;

/**
 * Checks a URL against the policy: https, http and ssh, and folders under one of `localRoots` (real paths, so that no link leads out of them).
 * Everything else is refused: git knows transports that run programs. Throws RuntimeError `refused`.
 */
export function locate(url: string, localRoots: readonly string[]): GitLocation {
  if (url.startsWith('-') || /[\0\n\r]/.test(url)) throw refused(url, 'is not a URL');
  const scp = SCP_FORM.exec(url);
  if (scp) return { url, kind: 'ssh', host: scp[2]! };
  if (url.startsWith('/')) return local(url, localRoots);
  if (!URL.canParse(url)) throw refused(url, 'is not a URL');
  const parsed = new URL(url);
  const kind = parsed.protocol.slice(0, -1);
  if (kind === 'file') return local(decodeURIComponent(parsed.pathname), localRoots);
  if (kind !== 'https' && kind !== 'http' && kind !== 'ssh')
    throw refused(url, 'has a transport that is not allowed: https, http and ssh are');
  if (parsed.hostname === '' || parsed.hostname.startsWith('-')) throw refused(url, 'names no host');
  return { url, kind, host: parsed.hostname.replace(/^\[|\]$/g, '') };
}

function local(folder: string, localRoots: readonly string[]): GitLocation {
  if (!existsSync(folder) || !statSync(folder).isDirectory())
    throw refused(folder, 'is not a folder of this machine that may be used');
  const real = realpathSync(folder);
  const allowed = localRoots.some((root) => existsSync(root) && within(real, realpathSync(root)));
  if (!allowed)
    throw refused(
      folder,
      'is not a folder of this machine that may be used: QUARTERDECK_LOCAL_GIT_ROOTS names those that are',
    );
  return { url: real, kind: 'local', host: null };
}

const within = (folder: string, root: string): boolean => folder === root || folder.startsWith(root + path.sep);

const refused = (url: string, why: string): RuntimeError =>
  new RuntimeError('refused', `The git URL ${url.slice(0, 200)} ${why}.`);

/** Throws unless the name is one that git accepts for a branch or tag (git-check-ref-format). */
export function checkBranch(branch: string): void {
  const bad =
    branch === '' ||
    branch.startsWith('-') ||
    branch.startsWith('/') ||
    branch.endsWith('/') ||
    branch.endsWith('.') ||
    branch.endsWith('.lock') ||
    branch.includes('..') ||
    branch.includes('@{') ||
    branch.includes('//') ||
    /[\x00-\x20\x7f~^:?*[\\]/.test(branch) ||
    branch.split('/').some((part) => part.startsWith('.'));
  if (bad) throw new RuntimeError('refused', `${JSON.stringify(branch.slice(0, 100))} is not the name of a branch.`);
}

/** Throws unless the text is a commit: 7 to 40 hexadecimal digits. */
export function checkCommit(commit: string): void {
  if (!/^[0-9a-f]{7,40}$/.test(commit))
    throw new RuntimeError(
      'refused',
      `${JSON.stringify(commit.slice(0, 100))} is not a commit: 7 to 40 hexadecimal digits are wanted.`,
    );
}
