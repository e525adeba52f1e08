import { parseJson } from '#kernel/parsing/json.ts';

/** References that are told. */
const MOST_TOLD = 5;
/** Keywords whose value names another schema, which a validator fetches unless it is in the same file. */
const REFERENCES = new Set(['$ref', '$dynamicRef', '$recursiveRef']);
/** Address of the schemas of schemas, which validators have built in, in several spellings. */
const BUILT_IN = /^https?:\/\/json-schema\.org\//;

/** Returns references of a JSON schema to something outside of its file: a validator would read that file, or ask that server. */
export function findOutsideReferences(text: string): string[] {
  const found = new Set<string>();
  const waiting: unknown[] = [parseJson(text)];
  while (waiting.length > 0 && found.size < MOST_TOLD) {
    const value = waiting.pop();
    if (typeof value !== 'object' || value === null) continue;
    for (const [key, inner] of Object.entries(value)) {
      if (typeof inner === 'string' && leadsOutside(key, inner)) found.add(inner.slice(0, 200));
      else waiting.push(inner);
    }
  }
  return [...found];
}

const leadsOutside = (key: string, value: string): boolean =>
  (REFERENCES.has(key) && !value.startsWith('#')) || (key === '$schema' && !BUILT_IN.test(value));
