/** Returns whether a reference names a registry image, pinned by digest. `build` returns an id of the engine instead. */
export const isPinned = (reference: string): boolean => reference.includes('@sha256:');

/** Returns host and port of a registry as they appear in a reference; Docker Hub's if it begins with none. */
export function registryHost(reference: string): string {
  const [first, ...rest] = reference.split('/') as [string, ...string[]];
  return rest.length > 0 && (/[.:]/.test(first) || first === 'localhost') ? first : 'docker.io';
}

/** The digest of a pinned reference in hexadecimal; empty for any other. */
export const digestOf = (reference: string): string => /@sha256:([0-9a-f]{64})$/.exec(reference)?.[1] ?? '';
