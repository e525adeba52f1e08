import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { endProcessesIn } from '#runtimes/tools/left-behind.ts';

const root = mkdtempSync(path.join(tmpdir(), 'qd-left-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

test.runIf(process.platform === 'linux')(
  'what works in a folder or below is ended, even when the folder is gone, and nothing else',
  async () => {
    const start = async (folder: string) => {
      mkdirSync(folder, { recursive: true });
      const child = spawn('sleep', ['60'], { cwd: folder, stdio: 'ignore' });
      await once(child, 'spawn');
      return child;
    };
    const [inside, below, gone, beside] = [
      await start(path.join(root, 'a')),
      await start(path.join(root, 'a/b')),
      await start(path.join(root, 'a/c')),
      await start(path.join(root, 'ab')),
    ];
    rmSync(path.join(root, 'a/c'), { recursive: true });
    const ends = [inside, below, gone].map((child) => once(child, 'exit'));
    await endProcessesIn(path.join(root, 'a'));
    for (const [, signal] of await Promise.all(ends)) expect(signal).toBe('SIGKILL');
    expect(beside.exitCode ?? beside.signalCode).toBeNull();
    beside.kill();
    await endProcessesIn(path.join(root, 'nothing'));
  },
);
