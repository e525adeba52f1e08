/** Authentication that a registry requires before it answers (RFC 9110 §11.6.1, `WWW-Authenticate`). */
export interface Challenge {
  scheme: 'basic' | 'bearer';
  /** `realm`, `service` and `scope` of a bearer challenge. */
  parameters: ReadonlyMap<string, string>;
}

/** Returns the first challenge in a header that can be answered; undefined if there is none. */
export function parseChallenge(header: string | string[] | undefined): Challenge | undefined {
  for (const text of [header ?? []].flat()) {
    const scheme = /^\s*(basic|bearer)\b/i.exec(text)?.[1]?.toLowerCase();
    if (scheme !== 'basic' && scheme !== 'bearer') continue;
    const pairs = [...text.matchAll(/\b([a-z_]+)\s*=\s*(?:"([^"]*)"|([^\s",]+))/gi)];
    const parameters = new Map(pairs.map(([, key, quoted, bare]) => [key!.toLowerCase(), quoted ?? bare ?? '']));
    return { scheme, parameters };
  }
  return undefined;
}
