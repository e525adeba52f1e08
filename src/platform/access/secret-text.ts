import { createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Vault } from '#platform/vault/index.ts';

/** Secret that is shown once, and the digest of it that is stored. */
export interface MadeSecret {
  text: string;
  hash: Buffer;
}

/** Parts of a shown secret. */
export interface SecretParts {
  id: string;
  secret: string;
}

/** Makes a secret for an id: `<prefix>_<id as 32 hex digits>_<256 random bits as base64url>`. The id finds the row, the rest proves it. */
export const makeSecretText = (prefix: string, id: string): MadeSecret => secretText(prefix, id, randomBytes(32));

/**
 * Derives the secret of an id from the installation's key: the same each time, so that a mail is sent again without a stored secret. The id must
 * be random, and not be used again.
 */
export const deriveSecretText = (vault: Pick<Vault, 'deriveKey'>, prefix: string, id: string): MadeSecret =>
  secretText(prefix, id, createHmac('sha256', vault.deriveKey('one-time links')).update(`${prefix} ${id}`).digest());

function secretText(prefix: string, id: string, bytes: Buffer): MadeSecret {
  const secret = bytes.toString('base64url');
  return { text: `${prefix}_${id.replaceAll('-', '')}_${secret}`, hash: hashOf(secret) };
}

/** Returns the parts of a secret with this prefix; undefined for any other text. */
export function parseSecretText(prefix: string, text: string): SecretParts | undefined {
  const match = /^([a-z]+)_([0-9a-f]{32})_([A-Za-z0-9_-]{43})$/.exec(text);
  if (match?.[1] !== prefix) return undefined;
  const hex = match[2]!;
  const id = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
  return { id, secret: match[3]! };
}

/** Returns whether a digest is that of a secret, in constant time. */
export const isSecret = (stored: Buffer, secret: string): boolean => timingSafeEqual(stored, hashOf(secret));

// Random bits need no slow digest: they cannot be guessed.
const hashOf = (secret: string): Buffer => hash('sha256', secret, 'buffer');
