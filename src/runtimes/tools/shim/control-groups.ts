import { readFileSync, writeFileSync } from 'node:fs';
import { processTree } from '#runtimes/tools/shim/process-tree.ts';

/** Moves processes and all their descendants into control groups, given by their `cgroup.procs` files. */
export function joinGroups(files: readonly string[], roots: readonly number[]): void {
  if (files.length === 0) return;
  const pids = roots.flatMap((pid) => processTree(pid));
  for (const file of files) {
    const members = new Set(readFileSync(file, 'utf8').split('\n'));
    for (const pid of pids) if (!members.has(String(pid))) join(file, pid);
  }
}

function join(file: string, pid: number): void {
  try {
    writeFileSync(file, String(pid));
  } catch (error) {
    // The process has just ended.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
