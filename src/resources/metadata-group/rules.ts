import { invalidField } from '#kernel/errors.ts';

/** Label or annotation. */
export interface Entry {
  key: string;
  value: string;
  propagate_to_cloud_provider?: boolean;
}

/** Pattern of Kubernetes for the name of a label or annotation, and for the value of a label. */
const NAME = /^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/;
const DNS_NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/;
/** Kubernetes' limit for all annotations of an object together, in bytes. */
const ANNOTATIONS_BYTES = 256 * 1024;

/** Prefix of the keys that runtimes write on their objects themselves. */
const RESERVED = 'quarterdeck.';

/** Throws 400 for a key that Kubernetes would not accept, that is given twice, or that begins with `RESERVED`. */
function checkKeys(field: string, entries: Entry[]): void {
  const seen = new Set<string>();
  for (const [at, { key }] of entries.entries()) {
    const path = `${field}[${at}].key`;
    const [name, prefix, ...more] = key.split('/').reverse();
    if (more.length > 0 || (prefix !== undefined && (prefix.length > 253 || !DNS_NAME.test(prefix))))
      throw invalidField(
        path,
        'what stands before its one slash must be a lower-case DNS name, such as example.com/team',
      );
    if (!NAME.test(name!))
      throw invalidField(
        path,
        'must be 1 to 63 letters, digits, "-", "_" or ".", with a letter or digit at both ends; a DNS name and a slash may stand before it',
      );
    if (key.startsWith(RESERVED))
      throw invalidField(path, `keys that begin with ${RESERVED} are kept for the service itself`);
    if (seen.has(key)) throw invalidField(path, `the key ${key} is given twice`);
    seen.add(key);
  }
}

/** Throws 400 for labels that Kubernetes would not accept. */
export function checkLabels(field: string, entries: Entry[]): void {
  checkKeys(field, entries);
  for (const [at, { value }] of entries.entries())
    if (value !== '' && !NAME.test(value))
      throw invalidField(
        `${field}[${at}].value`,
        'must be empty or 1 to 63 letters, digits, "-", "_" or ".", with a letter or digit at both ends',
      );
}

/** Throws 400 for annotations that Kubernetes would not accept: their values are any text. */
export function checkAnnotations(field: string, entries: Entry[]): void {
  checkKeys(field, entries);
  const bytes = entries.reduce((sum, { key, value }) => sum + Buffer.byteLength(key) + Buffer.byteLength(value), 0);
  if (bytes > ANNOTATIONS_BYTES)
    throw invalidField(field, `keys and values together may have ${ANNOTATIONS_BYTES} bytes, these have ${bytes}`);
}
