import { hkdfSync } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { bech32 } from '@scure/base';
import { openNew } from '#kernel/private-files.ts';
import { KEY_BYTES } from '#platform/vault/index.ts';

/**
 * Returns the age identity of a key of the vault: with the key file alone a copy can be read, and without it nothing of it. It tells nothing
 * of the key.
 */
export function identityOf(vaultKey: Buffer): string {
  const secret = new Uint8Array(hkdfSync('sha256', vaultKey, '', 'quarterdeck/copies', KEY_BYTES));
  return bech32.encodeFromBytes('AGE-SECRET-KEY-', secret).toUpperCase();
}

/** Encrypts a file with the first key of the vault, in the format of age. The result must not be there yet. */
export async function encryptFile(
  file: string,
  result: string,
  vaultKeys: Buffer[],
  signal: AbortSignal,
): Promise<void> {
  const { Encrypter, identityToRecipient } = await import('age-encryption');
  const encrypter = new Encrypter();
  encrypter.addRecipient(await identityToRecipient(identityOf(vaultKeys[0]!)));
  await convert(file, result, (stream) => encrypter.encrypt(stream), signal);
}

/** Decrypts what `encryptFile` made with any of the keys. Throws for another key, and for a file that was changed. */
export async function decryptFile(
  file: string,
  result: string,
  vaultKeys: Buffer[],
  signal: AbortSignal,
): Promise<void> {
  const { Decrypter } = await import('age-encryption');
  const decrypter = new Decrypter();
  for (const key of vaultKeys) decrypter.addIdentity(identityOf(key));
  try {
    await convert(file, result, (stream) => decrypter.decrypt(stream), signal);
  } catch (error) {
    if (signal.aborted || (error as NodeJS.ErrnoException).code) throw error;
    throw new Error(
      'The copy cannot be decrypted: the key file of the vault lacks the key that it was made with, or the copy was changed.',
      { cause: error },
    );
  }
}

type Bytes = ReadableStream<Uint8Array>;

async function convert(
  file: string,
  result: string,
  change: (stream: Bytes) => Promise<Bytes>,
  signal: AbortSignal,
): Promise<void> {
  const changed = await change(Readable.toWeb(createReadStream(file)) as Bytes);
  await pipeline(Readable.fromWeb(changed as never), openNew(result), {
    signal,
  });
}
