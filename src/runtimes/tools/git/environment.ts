import path from 'node:path';
import { isNamed } from '#runtimes/tools/git/location.ts';
import type { GitCredentials, GitLocation } from '#runtimes/tools/git/location.ts';

export interface GitAccess {
  /** Credentials for https and http, sent to the location's own origin only. */
  credentials: GitCredentials | null;
  /** Home folder of the processes: empty, and not shared. */
  home: string;
  /** Private key that every ssh source is read with, if the installation has one. */
  sshKeyFile: string | null;
  /** File of the known host keys of ssh servers, which are trusted on first use. */
  knownHostsFile: string;
}

/**
 * Returns the whole environment of a git process. It allows no configuration of the machine or of a home folder, no hooks, no prompt, no
 * background work, no transport except the URL's, and no redirects (redirect.ts follows the allowed ones). Credentials stand only here,
 * never on a command line or in a file, and are sent to the URL's own origin only.
 */
export function gitEnvironment(location: GitLocation, access: GitAccess): Record<string, string> {
  const settings: [string, string][] = [
    ['core.hooksPath', '/dev/null'],
    ['core.fsmonitor', 'false'],
    ['protocol.ext.allow', 'never'],
    ['http.followRedirects', 'false'],
    ['http.lowSpeedLimit', '1000'],
    ['http.lowSpeedTime', '30'],
    ['advice.detachedHead', 'false'],
    ['gc.auto', '0'],
    ['maintenance.auto', 'false'],
    ['fetch.recurseSubmodules', 'false'],
    ['submodule.recurse', 'false'],
    ['uploadpack.allowAnySHA1InWant', 'true'],
    ...placeSettings(location, access.credentials),
  ];
  return {
    HOME: access.home,
    XDG_CONFIG_HOME: access.home,
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_ASKPASS: '/bin/false',
    SSH_ASKPASS: '/bin/false',
    GIT_ALLOW_PROTOCOL: location.kind === 'local' ? 'file' : location.kind,
    GIT_OPTIONAL_LOCKS: '0',
    // Missing objects are not fetched implicitly (promises.ts).
    GIT_NO_LAZY_FETCH: '1',
    GIT_LITERAL_PATHSPECS: '1',
    GIT_LFS_SKIP_SMUDGE: '1',
    GIT_SSH_COMMAND: sshCommand(location, access),
    LC_ALL: 'C',
    GIT_CONFIG_COUNT: String(settings.length),
    ...Object.fromEntries(
      settings.flatMap(([key, value], index) => [
        [`GIT_CONFIG_KEY_${index}`, key],
        [`GIT_CONFIG_VALUE_${index}`, value],
      ]),
    ),
  };
}

/** Returns the settings that depend on the location: its credentials, its checked addresses, its owner. */
function placeSettings(location: GitLocation, credentials: GitCredentials | null): [string, string][] {
  const { kind, url, host, addresses, origin } = location;
  // The operator's settings allow this folder, whichever account owns it.
  if (kind === 'local') return [['safe.directory', '*']];
  if (kind === 'ssh') return [];
  const settings: [string, string][] = [];
  if (credentials) {
    const basic = Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64');
    settings.push([`http.${origin}/.extraHeader`, `Authorization: Basic ${basic}`]);
  }
  if (addresses?.length && isNamed(host!)) {
    const port = new URL(url).port || (kind === 'https' ? '443' : '80');
    const listed = addresses.map((address) => (address.includes(':') ? `[${address}]` : address));
    settings.push(['http.curloptResolve', `${host}:${port}:${listed.join(',')}`]);
  }
  return settings;
}

/** Returns the ssh command without the keys, the agent and the settings of this process's account: users must not use those. */
function sshCommand(location: GitLocation, access: GitAccess): string {
  const options = [
    'BatchMode=yes',
    'ConnectTimeout=20',
    'StrictHostKeyChecking=accept-new',
    `UserKnownHostsFile=${quoted(access.knownHostsFile)}`,
    'GlobalKnownHostsFile=/dev/null',
    'IdentitiesOnly=yes',
    'IdentityAgent=none',
    `IdentityFile=${access.sshKeyFile ? quoted(path.resolve(access.sshKeyFile)) : 'none'}`,
    'CheckHostIP=no',
  ];
  const [address] = location.addresses ?? [];
  if (location.kind === 'ssh' && address) options.push(`HostName=${address}`, `HostKeyAlias=${location.host}`);
  return ['ssh', '-F', '/dev/null', ...options.map((option) => `-o ${shellQuoted(option)}`)].join(' ');
}

/** Quotes a file name in an option of ssh, which otherwise splits it at blanks. */
const quoted = (file: string): string => `"${file}"`;

/** Quotes a text for the shell that runs GIT_SSH_COMMAND. The host is the only part from a user, and its form is checked. */
const shellQuoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
