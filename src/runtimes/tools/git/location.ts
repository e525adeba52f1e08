import { realpathSync, statSync } from 'node:fs';
import { isIP } from 'node:net';
import path from 'node:path';
import { RuntimeError } from '#runtimes/runtime.ts';

/** Location of a repository that the policy allows. */
export interface GitLocation {
  /** URL for git, in its normal form and without credentials. */
  url: string;
  kind: 'https' | 'http' | 'ssh' | 'local';
  /** Host to connect to; null for a local folder. */
  host: string | null;
  /** Scheme, host and port, to which the credentials are restricted. Empty for a local folder. */
  origin: string;
  /** Credentials that stood in the URL. */
  credentials: GitCredentials | null;
  /** Checked addresses: git connects to these, whatever the name resolves to later. */
  addresses?: string[];
}

/** Credentials that git sends to a server. */
export interface GitCredentials {
  username: string;
  password: string;
}

/** `git@host:path`, which is no URL. */
const SCP_FORM = /^(\w[\w.-]*)@([a-zA-Z0-9][\w.-]*):((?!\/\/)[^-].*)$/;

/**
 * Checks a URL against the policy: https, http and ssh, and folders under one of `localRoots` (real paths, so that no link leads out).
 * Other transports are refused, because some run programs. Git receives the checked form, not the written one, so that both read the same
 * host. Throws RuntimeError `refused`.
 */
export function locate(url: string, localRoots: readonly string[]): GitLocation {
  if (/\p{Cc}/u.test(url) || url.startsWith('-')) throw refused(url, 'is not a URL');
  const scp = SCP_FORM.exec(url);
  if (scp) return remote('ssh', new URL(`ssh://${scp[1]}@${scp[2]}/${scp[3]!.replace(/^\//, '')}`), url);
  if (url.startsWith('/')) return local(url, localRoots);
  if (!URL.canParse(url)) throw refused(url, 'is not a URL');
  const parsed = new URL(url);
  const kind = parsed.protocol.slice(0, -1);
  if (kind === 'file' && parsed.host === '') return local(decoded(parsed.pathname), localRoots);
  if (kind !== 'https' && kind !== 'http' && kind !== 'ssh')
    throw refused(url, 'has a transport that is not allowed: https, http and ssh are');
  return remote(kind, parsed, null);
}

/**
 * Returns the location of a remote URL. `scp` is the form that git receives instead of the URL, because its path is relative to the
 * account's home.
 */
function remote(kind: 'https' | 'http' | 'ssh', parsed: URL, scp: string | null): GitLocation {
  const { hostname, username, password } = parsed;
  if (hostname === '' || hostname.startsWith('-') || username.startsWith('-'))
    throw refused(parsed.href, 'names no host');
  if (/[?#]/.test(parsed.href)) throw refused(parsed.origin + parsed.pathname, 'has a query or a fragment');
  const isWeb = kind !== 'ssh';
  const credentials =
    isWeb && (username || password) ? { username: decoded(username), password: decoded(password) } : null;
  if (isWeb) parsed.username = '';
  parsed.password = '';
  return {
    url: scp ?? parsed.href,
    kind,
    host: hostname.replace(/^\[|\]$/g, ''),
    origin: `${kind}://${parsed.host}`,
    credentials,
  };
}

function local(folder: string, localRoots: readonly string[]): GitLocation {
  const real = realFolder(folder);
  const roots = localRoots.map(realFolder).filter((root) => root !== null);
  // Absent and forbidden folders have the same answer, so that users cannot explore the machine.
  if (real === null || !roots.some((root) => isWithin(real, root)))
    throw refused(
      folder,
      'is not a folder of this machine that may be used (QUARTERDECK_LOCAL_GIT_ROOTS names those that are)',
    );
  return { url: real, kind: 'local', host: null, origin: '', credentials: null };
}

function realFolder(folder: string): string | null {
  try {
    const real = realpathSync(folder);
    return statSync(real).isDirectory() ? real : null;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'EACCES' || code === 'ELOOP' || code === 'ENAMETOOLONG')
      return null;
    throw error;
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw refused(text, 'is not well encoded');
  }
}

/** Returns whether a folder equals another one or lies in it; both are real paths. */
export const isWithin = (folder: string, root: string): boolean =>
  folder === root || folder.startsWith(root.endsWith(path.sep) ? root : root + path.sep);

/**
 * Returns the URL of the same repository over https, where a token works. Null if its ssh server has a port of its own: the web server's
 * address is then unknown.
 */
export function overHttps(location: GitLocation): string | null {
  const scp = SCP_FORM.exec(location.url);
  const url = new URL(scp ? `ssh://${scp[2]}/${scp[3]}` : location.url);
  return url.port === '' || url.port === '22' ? `https://${url.hostname}${url.pathname}` : null;
}

/** Returns the URL of a submodule, which may be relative to that of its repository (`../other.git`). */
export function submoduleUrl(parent: string, url: string): string {
  if (!/^\.\.?\//.test(url)) return url;
  let base = parent.replace(/\/+$/, '');
  let rest = url;
  for (;;) {
    if (rest.startsWith('./')) rest = rest.slice(2);
    else if (rest.startsWith('../')) {
      rest = rest.slice(3);
      const cut = Math.max(base.lastIndexOf('/'), base.lastIndexOf(':'));
      if (cut < 1 || base.slice(0, cut).endsWith('/')) throw refused(url, 'leads out of its server');
      base = base.slice(0, cut + (base[cut] === ':' ? 1 : 0));
    } else return base.endsWith(':') ? base + rest : `${base}/${rest}`;
  }
}

/** Returns whether the host is a name that must be resolved. */
export const isNamed = (host: string): boolean => isIP(host) === 0;

const refused = (url: string, why: string): RuntimeError =>
  new RuntimeError('refused', `The git URL ${withoutCredentials(url).slice(0, 200)} ${why}.`);

/** Returns a URL without its credentials, for display. */
const withoutCredentials = (url: string): string => url.replace(/^(\w+:\/\/)[^/]*@/, '$1');
