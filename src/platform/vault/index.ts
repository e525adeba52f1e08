import { createCipheriv, createDecipheriv, createHash, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { LruMap } from 'toad-cache';
import { internal } from '#kernel/errors.ts';
import type { Database } from '#platform/database/index.ts';

const FORMAT = 1;
export const KEY_BYTES = 32;
const HEADER_BYTES = 1 + 4 + 12 + 16;
/** Bytes that are encrypted or decrypted in one turn of the event loop, which takes a few milliseconds. */
const SLICE_BYTES = 2 ** 21;

/**
 * Encryption of what must not lie readable in the database or its dumps: secret values, credentials, tokens of others.
 * Each organization has a data key, wrapped by the installation's key, which lies outside the database
 * (docs/contributing/architecture.md, *Data*). The associated data binds a value to its place, so that it cannot be moved to another row.
 */
export interface Vault {
  /** Makes a new data key for an organization, wrapped. */
  newDataKey(organizationId: string): Buffer;
  /** Encrypts. `place` names table, row and column: `variable/<id>/secret_value`. Large values take several turns of the event loop. */
  seal(db: Database, organizationId: string, place: string, value: string): Promise<Buffer>;
  /** Decrypts; throws if the value was not sealed for this organization and place. */
  open(db: Database, organizationId: string, place: string, sealed: Buffer): Promise<string>;
  /** Encrypts with the installation's own key, for values that belong to no organization: rotation.ts has the list of such values. */
  sealOwn(place: string, value: string): Buffer;
  openOwn(place: string, sealed: Buffer): string;
  /** Seals a value of the installation's own key anew, with the key that encrypts now. */
  rewrap(place: string, sealed: Buffer): Buffer;
  /**
   * Signs text (HMAC-SHA-256), for audit events: write access to the database alone is not enough to forge a signature. Throws before
   * `openInstallation` has found the key, which lies in the database, encrypted.
   */
  sign(text: string): Buffer;
  /**
   * Returns a key of 32 bytes for a purpose, such as the signatures of records in a cluster. It is the same in every process, also after the
   * installation's key was rotated, and tells nothing of other keys. Throws before `openInstallation` has found the key of signatures.
   */
  deriveKey(purpose: string): Buffer;
  /** Takes the key of signatures, as it is stored (encrypted). */
  useAuditKey(sealed: Buffer): void;
  /** Ids of the keys that it has, the one that encrypts first, hexadecimal. */
  keyIds(): string[];
}

/**
 * Makes a vault of the installation's keys: the first encrypts, all decrypt. Each has 32 bytes. `reread` answers the keys as they are
 * now, null where they can't be read at the moment: another process may have put a new one in front. It is asked before each use of the
 * installation's key, which is rare (data keys are remembered), and when a value names a key that is not known.
 */
export function createVault(keys: Buffer[], reread: () => Buffer[] | null = () => null): Vault {
  let ring = new KeyRing(keys);
  const refresh = (): KeyRing => {
    const fresh = reread();
    if (fresh) ring = new KeyRing(fresh);
    return ring;
  };
  const dataKeys = new LruMap<Buffer>(1000);

  const openWith = (place: string, sealed: Buffer): Buffer => {
    const id = keyIdOf(sealed);
    const key = ring.find(id) ?? refresh().find(id);
    if (!key)
      throw internal(
        `${place} is encrypted with the key ${id}, which is not in the key file of this machine: copy the file from the machine where the key was rotated.`,
      );
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
    const key = openWith(dataKeyPlace(organizationId), row.data_key);
    dataKeys.set(organizationId, key);
    return key;
  };
  let auditKey: Buffer | undefined;
  const signingKey = (): Buffer => {
    if (!auditKey) throw internal('The key of signatures was not read.');
    return auditKey;
  };
  return {
    newDataKey: (organizationId) => encrypt(refresh().first, dataKeyPlace(organizationId), randomBytes(KEY_BYTES)),
    seal: async (db, organizationId, place, value) => {
      const cipher = new Sealing(await dataKey(db, organizationId), place);
      return cipher.end(await inTurns(Buffer.from(value), (slice) => cipher.take(slice)));
    },
    open: async (db, organizationId, place, sealed) => {
      const cipher = new Opening(await dataKey(db, organizationId), place, sealed);
      const plain = cipher.end(await inTurns(sealed.subarray(HEADER_BYTES), (slice) => cipher.take(slice)));
      if (plain.length > SLICE_BYTES) await nextTurn();
      return plain.toString();
    },
    sealOwn: (place, value) => encrypt(refresh().first, place, Buffer.from(value)),
    openOwn: (place, sealed) => openWith(place, sealed).toString(),
    rewrap: (place, sealed) => encrypt(refresh().first, place, openWith(place, sealed)),
    sign: (text) => createHmac('sha256', signingKey()).update(text).digest(),
    deriveKey: (purpose) => Buffer.from(hkdfSync('sha256', signingKey(), '', `quarterdeck/${purpose}`, KEY_BYTES)),
    useAuditKey: (sealed) => {
      auditKey = Buffer.from(openWith(AUDIT_KEY, sealed).toString(), 'base64');
    },
    keyIds: () => refresh().ids,
  };
}

/** Place of the key that signs audit events. */
export const AUDIT_KEY = 'installation/audit_key';

/** Place of an organization's data key. */
export const dataKeyPlace = (organizationId: string): string => `organization/${organizationId}/data_key`;

class KeyRing {
  readonly first: Buffer;
  /** Ids in the order of the keys. */
  readonly ids: string[];
  readonly #byId: Map<string, Buffer>;

  constructor(keys: Buffer[]) {
    const [first] = keys;
    if (!first || keys.some((key) => key.length !== KEY_BYTES)) throw new Error('A key of the vault has 32 bytes.');
    this.first = first;
    this.ids = keys.map((key) => keyId(key).toString('hex'));
    this.#byId = new Map(keys.map((key, index) => [this.ids[index]!, key]));
  }

  find(id: string): Buffer | undefined {
    return this.#byId.get(id);
  }
}

function encrypt(key: Buffer, place: string, plain: Buffer): Buffer {
  const cipher = new Sealing(key, place);
  return cipher.end([cipher.take(plain)]);
}

function decrypt(key: Buffer, place: string, sealed: Buffer): Buffer {
  const cipher = new Opening(key, place, sealed);
  return cipher.end([cipher.take(sealed.subarray(HEADER_BYTES))]);
}

/** Encryption of one value. Layout: format, id of the key, nonce, tag, ciphertext. */
class Sealing {
  readonly #head: Buffer[];
  readonly #cipher;

  constructor(key: Buffer, place: string) {
    const nonce = randomBytes(12);
    this.#cipher = createCipheriv('aes-256-gcm', key, nonce);
    this.#cipher.setAAD(Buffer.from(place));
    this.#head = [Buffer.from([FORMAT]), keyId(key), nonce];
  }

  take(plain: Buffer): Buffer {
    return this.#cipher.update(plain);
  }

  end(taken: Buffer[]): Buffer {
    const last = this.#cipher.final();
    return Buffer.concat([...this.#head, this.#cipher.getAuthTag(), ...taken, last]);
  }
}

/** Decryption of one value. Its constructor and `end` throw an internal error that names the place. */
class Opening {
  readonly #place: string;
  readonly #decipher;

  constructor(key: Buffer, place: string, sealed: Buffer) {
    if (sealed[0] !== FORMAT || sealed.length < HEADER_BYTES)
      throw internal(`${place} is not in a format of the vault.`);
    this.#place = place;
    this.#decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(5, 17));
    this.#decipher.setAAD(Buffer.from(place));
    this.#decipher.setAuthTag(sealed.subarray(17, 33));
  }

  take(ciphertext: Buffer): Buffer {
    return this.#decipher.update(ciphertext);
  }

  /** Returns the plain text. What was taken must not be used before, because only the end shows that it is genuine. */
  end(taken: Buffer[]): Buffer {
    try {
      return Buffer.concat([...taken, this.#decipher.final()]);
    } catch (cause) {
      throw internal(`${this.#place} cannot be decrypted: another key, another place, or changed.`, cause);
    }
  }
}

/** Works on bytes slice by slice, each in a turn of the event loop; values of one slice take no turn more. */
async function inTurns(bytes: Buffer, work: (slice: Buffer) => Buffer): Promise<Buffer[]> {
  const done: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
    if (at > 0) await nextTurn();
    done.push(work(bytes.subarray(at, at + SLICE_BYTES)));
  }
  if (done.length > 1) await nextTurn();
  return done;
}

/** Id of the key that a value is encrypted with, hexadecimal. It tells nothing of the key. */
export const keyIdOf = (sealed: Buffer): string => sealed.subarray(1, 5).toString('hex');

const keyId = (key: Buffer): Buffer => createHash('sha256').update('key-id').update(key).digest().subarray(0, 4);
