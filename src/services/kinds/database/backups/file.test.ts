import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Writable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterAll, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import {
  backupPath,
  readBackup,
  removeBackup,
  verifyBackup,
  writeBackup,
} from '#services/kinds/database/backups/file.ts';

const dataDir = mkdtempSync(path.join(tmpdir(), 'qd-backup-'));
afterAll(() => rmSync(dataDir, { recursive: true }));

const newFile = () => ({ dataDir, organizationId: newId(), backupId: newId(), key: randomBytes(32) });

const filling =
  (...parts: Buffer[]) =>
  async (to: Writable) => {
    for (const part of parts) if (!to.write(part)) await new Promise((resolve) => to.once('drain', resolve));
  };

describe('the file of a backup', () => {
  test.each([0, 1, 1 << 20, (1 << 20) + 1, 5_000_000])('gives back %i bytes as they were', async (size) => {
    const file = newFile();
    const content = randomBytes(size);
    const written = await writeBackup(file, filling(content.subarray(0, size / 3), content.subarray(size / 3)));
    expect(written.bytes).toBe(size);
    expect(written.storedBytes).toBe(readFileSync(backupPath(file)).length);
    expect((await buffer(readBackup(file))).equals(content)).toBe(true);
    await verifyBackup(file);
  });

  test('that fails at once leaves nothing behind, however fast that is', async () => {
    const file = newFile();
    const failed = Array.from({ length: 100 }, () =>
      writeBackup({ ...file, backupId: newId() }, () => Promise.reject(new Error('away'))),
    );
    for (const { status } of await Promise.allSettled(failed)) expect(status).toBe('rejected');
    expect(readdirSync(path.dirname(backupPath(file)))).toEqual([]);
  });

  test('tells nothing of its content, is read by its key alone, and under no other name', async () => {
    const file = newFile();
    await writeBackup(file, filling(Buffer.from('a secret '.repeat(1000))));
    expect(readFileSync(backupPath(file)).includes('secret')).toBe(false);
    await expect(verifyBackup({ ...file, key: randomBytes(32) })).rejects.toThrow('was changed, or its key is another');
    const other = { ...file, backupId: newId() };
    writeFileSync(backupPath(other), readFileSync(backupPath(file)));
    await expect(verifyBackup(other)).rejects.toThrow('was changed');
  });

  test('is refused where anything of it was changed, left out, exchanged or cut off', async () => {
    const file = newFile();
    await writeBackup(file, filling(randomBytes(3_500_000)));
    const whole = readFileSync(backupPath(file));
    const tried = async (bytes: Buffer) => {
      writeFileSync(backupPath(file), bytes);
      return verifyBackup(file).then(
        () => 'whole',
        (error: Error) => error.message,
      );
    };
    const first = 4;
    const chunk = 4 + 16 + (1 << 20);
    const [head, one, two, rest] = [
      whole.subarray(0, first),
      whole.subarray(first, first + chunk),
      whole.subarray(first + chunk, first + 2 * chunk),
      whole.subarray(first + 2 * chunk),
    ];
    for (const end of [first, first + 10, first + chunk, whole.length - 1]) expect(await tried(whole.subarray(0, end))).toMatch(/cut off/); // prettier-ignore
    expect(await tried(Buffer.concat([head, two, one, rest]))).toMatch(/was changed/);
    expect(await tried(Buffer.concat([head, one, rest]))).toMatch(/was changed/);
    expect(await tried(Buffer.concat([whole, one]))).toMatch(/goes on behind its end/);
    const flipped = Buffer.from(whole);
    flipped[whole.length - 5]! ^= 1;
    expect(await tried(flipped)).toMatch(/was changed/);
    expect(await tried(Buffer.from('nothing of ours'))).toMatch(/no backup/);
    expect(await tried(whole)).toBe('whole');
  });

  test('is not there while it is made, nor after what made it failed', async () => {
    const file = newFile();
    const failing = writeBackup(file, async (to) => {
      to.write(randomBytes(2_000_000));
      expect(existsSync(backupPath(file))).toBe(false);
      throw new Error('the tool ended with status 1');
    });
    await expect(failing).rejects.toThrow('the tool ended with status 1');
    expect(existsSync(backupPath(file))).toBe(false);
    expect(existsSync(`${backupPath(file)}.making`)).toBe(false);
    await removeBackup(file, false);
    writeFileSync(`${backupPath(file)}.making`, 'left by a killed attempt');
    await writeBackup(file, filling(Buffer.from('again')));
    expect((await buffer(readBackup(file))).toString()).toBe('again');
    await removeBackup(file, false);
    await expect(verifyBackup(file)).rejects.toThrow(/ENOENT/);
  });
});
