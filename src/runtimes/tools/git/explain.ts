import { RuntimeError } from '#runtimes/runtime.ts';
import type { CommandResult } from '#runtimes/tools/command.ts';
import type { GitLocation } from '#runtimes/tools/git/location.ts';

/** Returns whether the server has no such branch or tag. */
export const isMissingRef = ({ stderr }: CommandResult): boolean => /couldn't find remote ref/i.test(stderr);

/** Converts a failure of git into an error for the person who entered the URL. */
export function explain({ stderr }: CommandResult, { url, kind }: GitLocation, hasCredentials: boolean): RuntimeError {
  const last = stderr.trim().split('\n').slice(-3).join(' ').slice(0, 500);
  if (/could not read Username|Authentication failed|returned error: 40[13]/i.test(stderr))
    return new RuntimeError(
      'failed',
      hasCredentials
        ? `${url} does not accept the git token: it may have expired, or may not read this repository.`
        : `${url} cannot be read without credentials: give the service a git token that may read it.`,
    );
  if (kind === 'ssh' && /Permission denied|Host key verification failed|Too many authentication/i.test(stderr))
    return new RuntimeError(
      'failed',
      `${url} does not let us in over ssh: give the service a git token, which is then used over https. (${last})`,
    );
  if (/ not found|does not appear to be a git repository|not a git repository/i.test(stderr))
    return new RuntimeError('failed', `There is no repository at ${url}, or it cannot be read without a git token.`);
  if (UNREACHABLE.test(stderr)) return new RuntimeError('unreachable', `${url} cannot be reached: ${last}`);
  return new RuntimeError('failed', `git failed on ${url}: ${last}`);
}

const UNREACHABLE =
  /Could not resolve|Connection refused|Connection reset|Failed to connect|timed out|too slow|No route|unable to access|Could not read from remote|early EOF|hung up/i;
