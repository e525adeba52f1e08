import { runCommand } from '#runtimes/tools/command.ts';

/** The first git that obeys GIT_NO_LAZY_FETCH. */
const FIRST = [2, 45] as const;

let asked: Promise<boolean> | undefined;

/**
 * Whether this machine's git can leave objects out (`--filter`) without fetching them later by itself. An older one fetches what is
 * missing whenever it meets it, also while it is at just that: a server that does not keep the promise makes it start itself over and
 * over, until the machine has no room for another process.
 */
export function keepsPromises(): Promise<boolean> {
  asked ??= runCommand('git', ['version']).then(({ stdout }) => isPromising(stdout));
  return asked;
}

/** The same for what `git version` says. */
export function isPromising(text: string): boolean {
  const [, major, minor] = /^git version (\d+)\.(\d+)/.exec(text) ?? [];
  return Number(major) > FIRST[0] || (Number(major) === FIRST[0] && Number(minor) >= FIRST[1]);
}
