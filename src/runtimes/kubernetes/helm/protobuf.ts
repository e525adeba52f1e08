/** Content type in which helm writes the Secrets of its revisions since it is built with Kubernetes 1.32. */
export const PROTOBUF = 'application/vnd.kubernetes.protobuf';

/** Beginning of an object in this encoding. */
const MAGIC = Buffer.from('k8s\0');
/** Field numbers: the bytes of the object in their envelope, its metadata in it, and the name in that. */
const PATH = [2, 1, 1];

/** Returns the name of an object in the binary encoding of Kubernetes; null for what is none, or has no name. */
export function nameInProtobuf(body: Buffer): string | null {
  if (!body.subarray(0, MAGIC.length).equals(MAGIC)) return null;
  let part: Buffer | null = body.subarray(MAGIC.length);
  for (const field of PATH) part = part && fieldIn(part, field);
  return part && part.toString('utf8');
}

/** Returns the content of a field with a length; null unless the message has it exactly once. */
function fieldIn(message: Buffer, wanted: number): Buffer | null {
  let found: Buffer | null = null;
  for (let at = 0; at < message.length;) {
    const key = readNumber(message, at);
    if (key === null) return null;
    const value = readNumber(message, key.end);
    if (value === null) return null;
    // Numbers, and what has a length, are all that the objects of Kubernetes are made of on this path.
    const [field, kind] = [Math.floor(key.value / 8), key.value % 8];
    if (kind === 0) {
      at = value.end;
      continue;
    }
    at = value.end + value.value;
    if (kind !== 2 || at > message.length) return null;
    if (field !== wanted) continue;
    if (found) return null;
    found = message.subarray(value.end, at);
  }
  return found;
}

/** Reads a number of up to 49 bits, seven in each byte. */
function readNumber(message: Buffer, start: number): { value: number; end: number } | null {
  let value = 0;
  for (let at = start; at < message.length && at < start + 7; at++) {
    value += (message[at]! & 0x7f) * 2 ** (7 * (at - start));
    if (message[at]! < 0x80) return { value, end: at + 1 };
  }
  return null;
}
