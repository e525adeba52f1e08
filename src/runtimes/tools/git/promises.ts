import { runCommand } from '#runtimes/tools/command.ts';

/** First version of git that obeys GIT_NO_LAZY_FETCH. */
const FIRST = [2, 45] as const;

let asked: Promise<boolean> | undefined;

/**
 * Returns whether this machine's git can omit objects (`--filter`) without fetching them later by itself. An older git fetches missing
 * objects whenever it meets them, even during such a fetch: a server that does not deliver them makes it start itself again and again,
 * until the machine has no room for another process.
 */
export function keepsPromises(): Promise<boolean> {
  asked ??= runCommand('git', ['version']).then(({ stdout }) => isPromising(stdout));
  return asked;
}

/** Returns the same for the output of `git version`. */
export function isPromising(text: string): boolean {
  const [, major, minor] = /^git version (\d+)\.(\d+)/.exec(text) ?? [];
  return Number(major) > FIRST[0] || (Number(major) === FIRST[0] && Number(minor) >= FIRST[1]);
}
