import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, writeFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { workloadPids } from '#runtimes/tools/shim/index.ts';

/** Pid after which the kernel looks for the next free one. */
const LAST_PID = '/proc/sys/kernel/ns_last_pid';

function canChoosePids(): boolean {
  try {
    accessSync(LAST_PID, constants.W_OK);
    return process.getuid?.() === 0;
  } catch {
    return false;
  }
}

/** Program that starts a child for each line that it reads, and writes the pid of that child. */
const PARENT = `const { spawn } = require('node:child_process');
require('node:readline').createInterface({ input: process.stdin }).on('line', () =>
  console.log(spawn('sleep', ['60'], { stdio: 'ignore' }).pid));`;

test.skipIf(!canChoosePids())(
  'the process of a workload is the one that was started first, also when later ones have lower pids',
  async () => {
    const parent = spawn(process.execPath, ['-e', PARENT], { stdio: ['pipe', 'pipe', 'inherit'], detached: true });
    onTestFinished(async () => {
      process.kill(-parent.pid!, 'SIGKILL');
      if (parent.exitCode === null && parent.signalCode === null) await once(parent, 'exit');
    });
    const childAfter = async (pid: number): Promise<number> => {
      writeFileSync(LAST_PID, String(pid));
      parent.stdin.write('\n');
      return Number(String((await once(parent.stdout, 'data'))[0]));
    };
    const first = await childAfter(20_000);
    expect(workloadPids(parent.pid!, 1)).toEqual({ wrapper: parent.pid, init: parent.pid, process: first });
    const later = await childAfter(10_000);
    expect(later).toBeLessThan(first);
    expect(workloadPids(parent.pid!, 1)).toEqual({ wrapper: parent.pid, init: parent.pid, process: first });
  },
);
