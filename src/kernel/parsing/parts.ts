/** Result of a parser that is a few texts: it passes between threads as it is, and no thread reads it in one go. */
export class Texts<T extends object> {
  readonly content: T;

  constructor(content: T) {
    this.content = content;
  }
}

/** Bytes of a part beyond which the next item begins another one. */
const PART_BYTES = 64 * 1024;

/** Writes items as texts of JSON lists, each of about 64 KiB: `readParts` reads them one after the other. */
export function toParts(items: Iterable<unknown>): string[] {
  const parts: string[] = [];
  let part: string[] = [];
  let bytes = 0;
  for (const item of items) {
    const text = JSON.stringify(item);
    part.push(text);
    bytes += text.length;
    if (bytes < PART_BYTES) continue;
    parts.push(`[${part.join(',')}]`);
    part = [];
    bytes = 0;
  }
  if (part.length > 0) parts.push(`[${part.join(',')}]`);
  return parts;
}

/** Reads the items of parts; other work of this thread goes on between them. */
export async function readParts<T>(parts: readonly string[]): Promise<T[]> {
  const items: T[] = [];
  for (const part of parts) {
    items.push(...(JSON.parse(part) as T[]));
    await new Promise((resolve) => setImmediate(resolve));
  }
  return items;
}
