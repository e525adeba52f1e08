import { argon2, randomBytes, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { invalidField } from '#kernel/errors.ts';

/** Digest of a password, with what it takes to make it again. */
export interface StoredPassword {
  password_hash: Buffer;
  password_salt: Buffer;
  memory_kib: number;
  passes: number;
}

/** Columns of a person's password; all of them are null for a person without one. */
type PasswordColumns = { [K in keyof StoredPassword]: StoredPassword[K] | null };

/** Returns the password of a person; undefined for a person without one. */
export function passwordOf(row: PasswordColumns | undefined): StoredPassword | undefined {
  if (!row) return undefined;
  const { password_hash, password_salt, memory_kib, passes } = row;
  if (password_hash === null || password_salt === null || memory_kib === null || passes === null) return undefined;
  return { password_hash, password_salt, memory_kib, passes };
}

/** Returns whether two passwords of a person are the same row unchanged; two that are absent are. */
export const isUnchanged = (one: StoredPassword | undefined, other: StoredPassword | undefined): boolean =>
  one && other ? one.password_hash.equals(other.password_hash) : one === other;

/** Costs of new digests: the second choice of RFC 9106 §4 needs 64 MiB; this is its equal in time with 19 MiB (OWASP). */
const COSTS = { memory_kib: 19_456, passes: 2 };
const HASH_BYTES = 32;
const SALT_BYTES = 16;

const derive = promisify(argon2);

/** Makes a digest (argon2id) of a password. It takes a processor for some 50 ms. */
export async function hashPassword(password: string): Promise<StoredPassword> {
  const salt = randomBytes(SALT_BYTES);
  return { password_hash: await digest(password, salt, COSTS), password_salt: salt, ...COSTS };
}

/** Returns whether a password is the stored one. Without a stored one it takes as long and is false. */
export async function isPassword(stored: StoredPassword | undefined, password: string): Promise<boolean> {
  const made = await digest(password, stored?.password_salt ?? Buffer.alloc(SALT_BYTES), stored ?? COSTS);
  return stored !== undefined && timingSafeEqual(made, stored.password_hash);
}

/** Throws 400 for a password that is the person's own name, or few characters again and again. */
export function requireGoodPassword(password: string, names: readonly string[]): void {
  const plain = normal(password).toLowerCase();
  const known = names.filter((name) => name.length > 3).map((name) => name.toLowerCase());
  if (new Set(plain).size < 5) throw invalidField('password', 'must have at least 5 different characters');
  if (known.some((name) => plain.replaceAll(name, '').length < plain.length / 2))
    throw invalidField('password', 'must not consist of your own name or address');
}

/** The same letters may be typed as different code points (RFC 8265 §4.2). */
const normal = (password: string): string => password.normalize('NFC');

async function digest(
  password: string,
  salt: Buffer,
  { memory_kib, passes }: Pick<StoredPassword, 'memory_kib' | 'passes'>,
): Promise<Buffer> {
  const parameters = { message: normal(password), nonce: salt, parallelism: 1, tagLength: HASH_BYTES };
  return derive('argon2id', { ...parameters, memory: memory_kib, passes });
}
