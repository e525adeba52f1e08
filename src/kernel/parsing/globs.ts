import path from 'node:path';
import type { GlobOptions } from '#kernel/parsing/formats.ts';

/**
 * Returns the paths that patterns match: one of them, and none of those behind a `!`. The text is the patterns as a JSON array. A pattern of
 * a hundred characters may take minutes, so that it is never matched outside of a thread with a limit of time.
 */
export function matchGlobs(text: string, { paths }: GlobOptions): string[] {
  const patterns = JSON.parse(text) as string[];
  const isNamed = (one: string) => patterns.some((pattern) => !pattern.startsWith('!') && path.posix.matchesGlob(one, pattern)); // prettier-ignore
  const isLeftOut = (one: string) => patterns.some((pattern) => pattern.startsWith('!') && path.posix.matchesGlob(one, pattern.slice(1))); // prettier-ignore
  return paths.filter((one) => isNamed(one) && !isLeftOut(one));
}
