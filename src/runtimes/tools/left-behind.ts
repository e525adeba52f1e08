import { readdirSync, readlinkSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isGone, sendSignal } from '#runtimes/tools/shim/identity.ts';
import { RuntimeError } from '#runtimes/runtime.ts';

const PATIENCE_MS = 5_000;
const LOOK_MS = 10;

/**
 * Ends the processes that work in a folder, which may be deleted already, or below it. Processes that a killed or suspended predecessor
 * started would otherwise continue to write beside its successor (docs/contributing/engine.md, *The queue*). Needs /proc.
 */
export async function endProcessesIn(directory: string): Promise<void> {
  for (const end = performance.now() + PATIENCE_MS; ; await sleep(LOOK_MS)) {
    const left = processesIn(path.resolve(directory));
    if (left.length === 0) return;
    for (const pid of left) sendSignal(pid, 'SIGKILL');
    if (performance.now() > end)
      throw new RuntimeError('failed', `Processes ${left.join(', ')} of an earlier attempt cannot be ended.`);
  }
}

function processesIn(directory: string): number[] {
  if (process.platform !== 'linux') return [];
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0 && pid !== process.pid && isIn(pid, directory));
}

function isIn(pid: number, directory: string): boolean {
  try {
    const folder = readlinkSync(`/proc/${pid}/cwd`).replace(/ \(deleted\)$/, '');
    return folder === directory || folder.startsWith(`${directory}/`);
  } catch (error) {
    // A process of another account is not one of the predecessor's.
    if (isGone(error) || (error as NodeJS.ErrnoException).code === 'EACCES') return false;
    throw error;
  }
}
