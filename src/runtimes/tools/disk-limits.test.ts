import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { withinDisk, type DiskWork } from '#runtimes/tools/disk-limits.ts';

const MIB = 2 ** 20;
const ROOM = { mostBytes: 2 * MIB, reservedBytes: 0 };

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'disk-limits-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

function within<T>(folder: string, work: Partial<DiskWork<T>> & Pick<DiskWork<T>, 'run'>): Promise<T> {
  const { signal } = new AbortController();
  return withinDisk({ name: 'The checkout', folders: [folder], disk: folder, limits: ROOM, signal, ...work });
}

const fill = (folder: string, mebibytes: number) =>
  writeFileSync(join(folder, 'file'), Buffer.alloc(mebibytes * MIB, 1));

/** Waits until its signal is aborted. */
const goOn = (signal: AbortSignal) => sleep(60_000, undefined, { signal });

test('work within its limits answers what it made', async () => {
  const folder = newFolder();
  await expect(within(folder, { run: async () => fill(folder, 1) })).resolves.toBeUndefined();
});

test('work that takes too much is ended while it goes on', async () => {
  const folder = newFolder();
  const run = async (signal: AbortSignal) => {
    fill(folder, 3);
    await goOn(signal);
  };
  await expect(within(folder, { run })).rejects.toMatchObject({
    code: 'failed',
    message: 'The checkout takes more than the 2 MiB of disk that the operator allows.',
  });
});

test('work that took too much before anybody looked fails at its end', async () => {
  const folder = newFolder();
  await expect(within(folder, { run: async () => fill(folder, 3) })).rejects.toThrow('more than the 2 MiB');
});

test('work does not begin where the disk has less than its reserve', async () => {
  const folder = newFolder();
  let began = false;
  const limits = { ...ROOM, reservedBytes: 2 ** 60 };
  await expect(within(folder, { limits, run: async () => void (began = true) })).rejects.toMatchObject({
    code: 'failed',
    message: expect.stringMatching(/^The disk of this machine has less than the \d+ MiB left/),
  });
  expect(began).toBe(false);
});

test('a cancelled work ends as cancelled, not as too large', async () => {
  const folder = newFolder();
  const cancel = new AbortController();
  const run = async (signal: AbortSignal) => {
    fill(folder, 3);
    cancel.abort(new Error('cancelled'));
    await goOn(signal);
  };
  await expect(within(folder, { signal: cancel.signal, run })).rejects.toMatchObject({ name: 'AbortError' });
});

test('without limits nothing is looked at', async () => {
  const folder = newFolder();
  await expect(within(folder, { limits: undefined, run: async () => fill(folder, 3) })).resolves.toBeUndefined();
});
