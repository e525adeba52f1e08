import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { withStartLock } from '#kernel/start-lock.ts';

let folder: string;
beforeEach(() => (folder = mkdtempSync(path.join(tmpdir(), 'qd-lock-'))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const lock = () => path.join(folder, 'start.lock');

describe('the lock of a start', () => {
  test('lets 20 in one after the other, and goes with the work, also with work that fails', async () => {
    let inside = 0;
    let done = 0;
    const work = async () => {
      expect(++inside).toBe(1);
      await sleep(2);
      inside--;
      done++;
      if (done % 3 === 0) throw new Error('failed');
    };
    const results = await Promise.allSettled(Array.from({ length: 20 }, () => withStartLock(folder, work)));
    expect(done).toBe(20);
    expect(results.filter(({ status }) => status === 'rejected')).toHaveLength(6);
    expect(existsSync(lock())).toBe(false);
  });

  test('of a process that has ended is taken over, by one of many', async () => {
    const { pid } = spawnSync('true');
    writeFileSync(lock(), JSON.stringify({ pid, began: '1' }));
    let inside = 0;
    const work = async () => {
      expect(++inside).toBe(1);
      await sleep(2);
      inside--;
    };
    await Promise.all(Array.from({ length: 10 }, () => withStartLock(folder, work, 5_000)));
  });

  test('of a process whose id another one has by now is taken over', async () => {
    writeFileSync(lock(), JSON.stringify({ pid: process.pid, began: 'before' }));
    expect(await withStartLock(folder, async () => 7, 5_000)).toBe(7);
  });

  test('that is held for too long fails with the process to be ended', async () => {
    await withStartLock(folder, async () => {
      await expect(withStartLock(folder, async () => undefined, 50)).rejects.toThrow(
        `held by process ${process.pid}, which has not finished its start`,
      );
    });
  });
});
