import { expect, test } from 'vitest';
import { AUDIT_KEY, createVault, KEY_BYTES } from '#platform/vault/index.ts';

const [first, second] = [Buffer.alloc(KEY_BYTES, 1), Buffer.alloc(KEY_BYTES, 2)];

test('a key for a purpose is the same in every process and after a rotation, and another one for each purpose', () => {
  const sealed = createVault([first]).sealOwn(AUDIT_KEY, Buffer.alloc(KEY_BYTES, 3).toString('base64'));
  const derive = (keys: Buffer[], purpose: string) => {
    const vault = createVault(keys);
    vault.useAuditKey(sealed);
    return vault.deriveKey(purpose).toString('hex');
  };
  const key = derive([first], 'records/a');
  expect(key).toMatch(/^[0-9a-f]{64}$/);
  expect(derive([second, first], 'records/a')).toBe(key);
  expect(derive([first], 'records/b')).not.toBe(key);
  expect(() => createVault([first]).deriveKey('records/a')).toThrow();
});
