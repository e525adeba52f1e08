import type { ChartObject } from '#kernel/parsing/formats.ts';

/** Beginning of the names of the Secrets in which helm keeps its revisions. */
const REVISION = 'sh.helm.release.v1.';

/** Returns whether a Secret is a revision of a release. */
export function isOwnRevision(name: string, release: string): boolean {
  const start = `${REVISION}${release}.v`;
  return name.startsWith(start) && /^\d+$/.test(name.slice(start.length));
}

/**
 * Returns why a Secret may not be written or removed: those of the revisions of other releases decide what helm applies and removes for
 * them. Null if it may. `object` is what is written, if it could be read.
 */
export function whyRevision(name: string, object: ChartObject | null, release: string): string | null {
  if (isOwnRevision(name, release)) return null;
  return name.startsWith(REVISION) || object?.isRevision
    ? `The Secret ${name} is, or would be, a revision of another release of helm.`
    : null;
}
