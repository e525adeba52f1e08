import path from 'node:path';
import type { GitLocation } from '#runtimes/tools/git/location.ts';

/** How git proves who asks. Neither stands on a command line, nor in a file of the checkout. */
export interface GitCredentials {
  username: string;
  password: string;
}

/**
 * The whole environment of a git process: no configuration of the machine or of a home folder, no hooks, no prompt, no transport but the one of the
 * URL, and credentials only for the URL's own host.
 */
export function gitEnvironment(
  location: GitLocation,
  credentials: GitCredentials | null,
  home: string,
): Record<string, string> {
  const settings: [string, string][] = [
    ['core.hooksPath', '/dev/null'],
    ['core.fsmonitor', 'false'],
    ['core.sshCommand', 'ssh -oBatchMode=yes -oStrictHostKeyChecking=accept-new'],
    ['protocol.ext.allow', 'never'],
    ['http.followRedirects', credentials ? 'false' : 'initial'],
    ['http.lowSpeedLimit', '1000'],
    ['http.lowSpeedTime', '30'],
    ['advice.detachedHead', 'false'],
    ['uploadpack.allowAnySHA1InWant', 'true'],
    ...(location.kind === 'local' ? ([['safe.directory', '*']] as [string, string][]) : []),
  ];
  if (credentials && (location.kind === 'https' || location.kind === 'http')) {
    const basic = Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64');
    settings.push([`http.${new URL(location.url).origin}/.extraHeader`, `Authorization: Basic ${basic}`]);
  }
  const counted = settings.flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, key],
    [`GIT_CONFIG_VALUE_${index}`, value],
  ]);
  return {
    HOME: home,
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_TERMINAL_PROMPT: '0',
    GIT_ASKPASS: '/bin/false',
    SSH_ASKPASS: '/bin/false',
    GIT_ALLOW_PROTOCOL: location.kind === 'local' ? 'file' : location.kind,
    GIT_OPTIONAL_LOCKS: '0',
    GIT_LFS_SKIP_SMUDGE: '1',
    LC_ALL: 'C',
    GIT_CONFIG_COUNT: String(settings.length),
    ...Object.fromEntries(counted),
    XDG_CONFIG_HOME: path.join(home, '.config'),
  };
}
