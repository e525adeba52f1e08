import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { randomBytes } from 'node:crypto';
import { afterAll, expect, test } from 'vitest';
import { decryptFile, encryptFile, identityOf } from '#platform/copies/encryption.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'qd-encryption-'));
afterAll(() => rmSync(folder, { recursive: true }));
const at = (name: string) => path.join(folder, name);
const { signal } = new AbortController();
const [old, key, other] = [randomBytes(32), randomBytes(32), randomBytes(32)];

test('a file of many parts is the same after it was encrypted and decrypted, also with a key that came later', async () => {
  const content = randomBytes(300_000);
  writeFileSync(at('plain'), content);
  await encryptFile(at('plain'), at('sealed'), [key, old], signal);
  const sealed = readFileSync(at('sealed'));
  expect(sealed.toString('latin1')).toMatch(/^age-encryption\.org\/v1\n-> X25519 /);
  expect(sealed.includes(content.subarray(1000, 1032))).toBe(false);
  await decryptFile(at('sealed'), at('again'), [other, key], signal);
  expect(readFileSync(at('again')).equals(content)).toBe(true);
});

test('without its key, changed or cut off it is refused', async () => {
  writeFileSync(at('plain'), randomBytes(200_000));
  await encryptFile(at('plain'), at('sealed2'), [key], signal);
  await expect(decryptFile(at('sealed2'), at('a'), [old, other], signal)).rejects.toThrow(
    'the key file of the vault lacks',
  );
  const sealed = readFileSync(at('sealed2'));
  writeFileSync(at('cut'), sealed.subarray(0, sealed.length - 70_000));
  await expect(decryptFile(at('cut'), at('b'), [key], signal)).rejects.toThrow('or the copy was changed');
  sealed[150_000]! ^= 1;
  writeFileSync(at('changed'), sealed);
  await expect(decryptFile(at('changed'), at('c'), [key], signal)).rejects.toThrow('or the copy was changed');
});

test('what is there already is not overwritten, and a disk that refuses is told as such', async () => {
  writeFileSync(at('kept'), 'kept');
  await expect(encryptFile(at('plain'), at('kept'), [key], signal)).rejects.toThrow('EEXIST');
  await expect(decryptFile(at('sealed'), at('kept'), [key], signal)).rejects.toThrow('EEXIST');
  expect(readFileSync(at('kept'), 'utf8')).toBe('kept');
});

test('an identity belongs to its key alone and tells nothing of it', () => {
  expect(identityOf(Buffer.alloc(32, 1))).toBe(identityOf(Buffer.alloc(32, 1)));
  expect(identityOf(Buffer.alloc(32, 1))).toMatch(/^AGE-SECRET-KEY-1[A-Z0-9]{58}$/);
  expect(identityOf(Buffer.alloc(32, 1))).not.toBe(identityOf(Buffer.alloc(32, 2)));
});
