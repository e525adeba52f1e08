import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
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

/** Program that starts a child after each pid of a line that it reads. It writes the pids of these children. */
const PARENT = `const { spawn } = require('node:child_process');
const { writeFileSync } = require('node:fs');
const childAfter = (pid) => {
  writeFileSync('${LAST_PID}', pid);
  return spawn('sleep', ['60'], { stdio: 'ignore' }).pid;
};
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) =>
  console.log(JSON.stringify(line.split(' ').map(childAfter))));`;

function startParent() {
  const parent = spawn(process.execPath, ['-e', PARENT], { stdio: ['pipe', 'pipe', 'inherit'], detached: true });
  onTestFinished(async () => {
    process.kill(-parent.pid!, 'SIGKILL');
    if (parent.exitCode === null && parent.signalCode === null) await once(parent, 'exit');
  });
  const childrenAfter = async (...pids: number[]): Promise<number[]> => {
    parent.stdin.write(`${pids.join(' ')}\n`);
    return JSON.parse(String((await once(parent.stdout, 'data'))[0])) as number[];
  };
  return { pid: parent.pid!, childrenAfter };
}

const startTimeOf = (pid: number): string => readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')[19]!;

test.skipIf(!canChoosePids())(
  'the process of a workload is the one that was started first, also when later ones have lower pids',
  async () => {
    const { pid, childrenAfter } = startParent();
    const [first] = await childrenAfter(20_000);
    expect(workloadPids(pid, 1)).toEqual({ wrapper: pid, init: pid, process: first });
    const [later] = await childrenAfter(10_000);
    expect(later).toBeLessThan(first!);
    expect(workloadPids(pid, 1)).toEqual({ wrapper: pid, init: pid, process: first });
  },
);

test.skipIf(!canChoosePids() || !existsSync(`/proc/${process.pid}/task/${process.pid}/children`))(
  'so it is when a later one began in the same hundredth of a second',
  async () => {
    for (;;) {
      const { pid, childrenAfter } = startParent();
      const [first, later] = await childrenAfter(20_000, 10_000);
      expect(later).toBeLessThan(first!);
      expect(workloadPids(pid, 1).process).toBe(first);
      if (startTimeOf(first!) === startTimeOf(later!)) return;
    }
  },
);
