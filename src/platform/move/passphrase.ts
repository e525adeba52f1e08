import { openSync, readFileSync, readSync, closeSync } from 'node:fs';
import type { Change } from '#platform/backup/archive-writer.ts';
import { BackupRefused } from '#platform/backup/format.ts';

/** Least characters of a passphrase: the archive may be attacked offline for years. */
const LEAST_CHARACTERS = 16;
const AGE = 'age-encryption.org/v1';

/** Reads a passphrase, the first line of a file. Throws Error if it is too short. */
export function readPassphrase(file: string): string {
  const text = readFileSync(file, 'utf8').split(/\r?\n/, 1)[0]!;
  if (text.length < LEAST_CHARACTERS)
    throw new Error(
      `${file}: the passphrase is its first line and must have ${LEAST_CHARACTERS} characters or more; \`openssl rand -hex 16\` makes one.`,
    );
  return text;
}

/** Encrypts an archive in the format of age. */
export function encryption(passphrase: string): Change {
  return async (bytes) => {
    const { Encrypter } = await import('age-encryption');
    const encrypter = new Encrypter();
    encrypter.setPassphrase(passphrase);
    return encrypter.encrypt(bytes);
  };
}

/**
 * Returns what decrypts a file; undefined for one that is not encrypted. Throws BackupRefused where file and passphrase do not go together.
 */
export function decryption(file: string, passphrase: string | undefined): Change | undefined {
  const isEncrypted = beginsWith(file, AGE);
  if (isEncrypted && passphrase === undefined)
    throw new BackupRefused(`${file} is encrypted: name the file with its passphrase with --passphrase-file.`);
  if (!isEncrypted && passphrase !== undefined)
    throw new BackupRefused(`${file} is not encrypted: leave --passphrase-file out.`);
  if (passphrase === undefined) return undefined;
  return async (bytes) => {
    const { Decrypter } = await import('age-encryption');
    const decrypter = new Decrypter();
    decrypter.addPassphrase(passphrase);
    const refused = (cause: unknown) =>
      new BackupRefused(
        `${file} cannot be decrypted: the passphrase is another one, or the file was changed or cut off.`,
        cause,
      );
    const plain = await decrypter.decrypt(bytes).catch((error: unknown) => {
      throw refused(error);
    });
    const reader = plain.getReader();
    return new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        const { value, done } = await reader.read().catch((error: unknown) => {
          throw (error as NodeJS.ErrnoException).code ? error : refused(error);
        });
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel: (reason) => reader.cancel(reason),
    });
  };
}

function beginsWith(file: string, text: string): boolean {
  const descriptor = openSync(file, 'r');
  try {
    const begin = Buffer.alloc(text.length);
    readSync(descriptor, begin, 0, begin.length, 0);
    return begin.toString('latin1') === text;
  } finally {
    closeSync(descriptor);
  }
}
