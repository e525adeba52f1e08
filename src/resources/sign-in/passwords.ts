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
