import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import { LRUCache } from '#platform/vault/lru.ts';
import { internal } from '#kernel/errors.ts';
import type { Database } from '#platform/database/index.ts';

const FORMAT = 1;
const KEY_BYTES = 32;
const HEADER_BYTES = 1 + 4 + 12 + 16;

/**
 * Encryption of what must not lie readable in the database or its dumps: secret values, credentials, tokens of others.
 * Each organization has a data key, wrapped by the installation's key, which lies outside the database
 * (architecture.md, *Data*). The associated data binds a value to its place, so that it cannot be moved to another row.
 */
export interface Vault {
  /** A new data key for an organization, wrapped. */
  newDataKey(organizationId: string): Buffer;
  /** Encrypts. `place` names table, row and column: `variable/<id>/secret_value`. */
  seal(db: Database, organizationId: string, place: string, value: string): Promise<Buffer>;
  /** Decrypts; throws if the value was not sealed for this organization and place. */
  open(db: Database, organizationId: string, place: string, sealed: Buffer): Promise<string>;
  /** The same with the installation's own key, for what belongs to no organization. */
  sealOwn(place: string, value: string): Buffer;
  openOwn(place: string, sealed: Buffer): string;
  /** Ids of the keys that it has, the one that encrypts first, hexadecimal. */
  keyIds(): string[];
}

/** Makes a vault of the installation's keys: the first encrypts, all decrypt. Each has 32 bytes. */
export function createVault(keys: Buffer[]): Vault {
  const [first] = keys;
  if (!first || keys.some((key) => key.length !== KEY_BYTES)) throw new Error('A key of the vault has 32 bytes.');
  const byId = new Map(keys.map((key) => [keyId(key).toString('hex'), key]));
  const dataKeys = new LRUCache<string, Buffer>(1000);

  const openWith = (place: string, sealed: Buffer): Buffer => {
    const key = byId.get(sealed.subarray(1, 5).toString('hex'));
    if (!key) throw internal(`${place} is encrypted with a key that is not here.`);
    return decrypt(key, place, sealed);
  };
  const dataKey = async (db: Database, organizationId: string): Promise<Buffer> => {
    const known = dataKeys.get(organizationId);
    if (known) return known;
    const row = await db
      .selectFrom('organization')
      .select('data_key')
      .where('id', '=', organizationId)
      .executeTakeFirst();
    if (!row) throw internal(`Organization ${organizationId} has no data key.`);
    const key = openWith(`organization/${organizationId}/data_key`, row.data_key);
    dataKeys.set(organizationId, key);
    return key;
  };
  return {
    newDataKey: (organizationId) => encrypt(first, `organization/${organizationId}/data_key`, randomBytes(KEY_BYTES)),
    seal: async (db, organizationId, place, value) =>
      encrypt(await dataKey(db, organizationId), place, Buffer.from(value)),
    open: async (db, organizationId, place, sealed) =>
      decrypt(await dataKey(db, organizationId), place, sealed).toString(),
    sealOwn: (place, value) => encrypt(first, place, Buffer.from(value)),
    openOwn: (place, sealed) => openWith(place, sealed).toString(),
    keyIds: () => keys.map((key) => keyId(key).toString('hex')),
  };
}

/** Layout: format, id of the key, nonce, tag, ciphertext. */
function encrypt(key: Buffer, place: string, plain: Buffer): Buffer {
  const nonce = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', key, nonce);
  cipher.setAAD(Buffer.from(place));
  const body = Buffer.concat([cipher.update(plain), cipher.final()]);
  return Buffer.concat([Buffer.from([FORMAT]), keyId(key), nonce, cipher.getAuthTag(), body]);
}

function decrypt(key: Buffer, place: string, sealed: Buffer): Buffer {
  if (sealed[0] !== FORMAT || sealed.length < HEADER_BYTES) throw internal(`${place} is not in a format of the vault.`);
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(5, 17));
  decipher.setAAD(Buffer.from(place));
  decipher.setAuthTag(sealed.subarray(17, 33));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(HEADER_BYTES)), decipher.final()]);
  } catch (cause) {
    throw internal(`${place} cannot be decrypted: another key, another place, or changed.`, cause);
  }
}

/** Id of the key that a value is encrypted with, hexadecimal. It tells nothing of the key. */
export const keyIdOf = (sealed: Buffer): string => sealed.subarray(1, 5).toString('hex');

const keyId = (key: Buffer): Buffer => createHash('sha256').update('key-id').update(key).digest().subarray(0, 4);
