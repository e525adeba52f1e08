import { randomBytes, randomUUID } from 'node:crypto';

/** Makes a random identifier (UUID version 4): host names use its first 8 digits, which version 7 would repeat within a minute. */
export const newId = (): string => randomUUID();

let lastMillis = 0;
let counter = 0;

/**
 * A time-ordered identifier (UUID version 7, RFC 9562 §5.7) for records that are read in order: events, deliveries.
 * Within one process ids made in the same millisecond still ascend (the 12 bits of `rand_a` count).
 */
export function newOrderedId(now: number = Date.now()): string {
  if (now > lastMillis) {
    lastMillis = now;
    counter = randomBytes(1)[0]!;
  } else if (++counter > 0xfff) {
    lastMillis++;
    counter = 0;
  }
  const time = lastMillis.toString(16).padStart(12, '0');
  const tail = randomBytes(8);
  tail[0] = (tail[0]! & 0x3f) | 0x80;
  const hex = tail.toString('hex');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${counter.toString(16).padStart(3, '0')}-${hex.slice(0, 4)}-${hex.slice(4)}`;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Returns whether the text is a lower-case UUID (docs/contributing/rules.md 8). */
export const isId = (text: string): boolean => UUID.test(text);

/** Returns the first 8 digits of an id, which names hosts and built-in variables (docs/contributing/rules.md 37). */
export const shortId = (id: string): string => id.slice(0, 8);
