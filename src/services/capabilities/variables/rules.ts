import { invalidField } from '#kernel/errors.ts';

const MAX_VALUE_BYTES = 64 * 1024;
const KEY = /^[a-zA-Z_][a-zA-Z0-9_]*$/;
const MAX_KEY = 255;

/** Returns the problem of a key from a request (docs/contributing/rules.md 32), undefined if there is none. */
export function wrongKey(key: string, prefix: string): string | undefined {
  if (!KEY.test(key)) return 'must begin with a letter or _, and have letters, digits and _ only';
  if (key.length > MAX_KEY) return `must have at most ${MAX_KEY} characters`;
  if (key.startsWith(prefix)) return `must not begin with ${prefix}, which built-in variables have`;
  return undefined;
}

/** Returns the problem of a value. Environments of programs and PostgreSQL allow no NUL character. */
export function wrongValue(value: string): string | undefined {
  if (Buffer.byteLength(value) > MAX_VALUE_BYTES) return 'must have at most 64 KiB';
  return value.includes('\0') ? 'must not contain a NUL character' : undefined;
}

/** Returns the problem of a file's path (docs/contributing/rules.md 34). */
function wrongMountPath(path: string): string | undefined {
  if (!path.startsWith('/')) return 'must be absolute: begin with /';
  if (path.includes('\0')) return 'must not contain a NUL character';
  const parts = path.split('/').slice(1);
  if (parts.some((part) => part === '' || part === '.' || part === '..'))
    return 'must name a file: no "..", ".", doubled or final /';
  return undefined;
}

/** Fields of a variable in a request that are checked without reading the database. */
export interface Said {
  key?: string;
  value?: string | null;
  mount_path?: string | null;
  description?: string | null;
}

/** Throws 400 that names the field. */
export function checkSaid({ key, value, mount_path, description }: Said, prefix: string): void {
  refuse('key', key === undefined ? undefined : wrongKey(key, prefix));
  refuse('value', typeof value === 'string' ? wrongValue(value) : undefined);
  refuse('mount_path', typeof mount_path === 'string' ? wrongMountPath(mount_path) : undefined);
  refuse('description', description?.includes('\0') ? 'must not contain a NUL character' : undefined);
}

function refuse(field: string, message: string | undefined): void {
  if (message) throw invalidField(field, message);
}
