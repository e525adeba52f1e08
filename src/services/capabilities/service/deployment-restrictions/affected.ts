/** Mode and path of a deployment restriction. */
export interface Restriction {
  mode: 'EXCLUDE' | 'MATCH';
  value: string;
}

/** Normalizes a path of the repository for storage and comparison: no `/` or `./` around it; the root is empty. */
export const normalizePath = (path: string): string =>
  path
    .split('/')
    .filter((part) => part !== '' && part !== '.')
    .join('/');

/** Returns whether the path is the file or folder, or lies in it. */
const isWithin = (path: string, place: string): boolean =>
  place === '' || path === place || path.startsWith(`${place}/`);

/**
 * Tells whether a push deploys a service automatically: at least one changed file must count. A file counts if no EXCLUDE covers it and, if
 * there is any MATCH, one of them does. Without restrictions every push deploys, an empty one too. `changedPaths` is null if the provider
 * does not report the changes. Then the push deploys, since a needless deployment does less harm than a missing one.
 */
export function isAffected(restrictions: readonly Restriction[], changedPaths: readonly string[] | null): boolean {
  if (restrictions.length === 0 || changedPaths === null) return true;
  const places = (mode: Restriction['mode']) =>
    restrictions.filter((one) => one.mode === mode).map((one) => normalizePath(one.value));
  const [matched, excluded] = [places('MATCH'), places('EXCLUDE')];
  return changedPaths.map(normalizePath).some((path) => {
    const inside = (place: string) => isWithin(path, place);
    return !excluded.some(inside) && (matched.length === 0 || matched.some(inside));
  });
}
