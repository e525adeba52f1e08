import { statfsSync } from 'node:fs';
import { RuntimeError } from '#runtimes/runtime.ts';
import { isDiskFull } from '#runtimes/tools/shim/state.ts';

/** Free bytes below which the disk counts as full. */
const LEAST_BYTES = 1 << 20;

/** Adds advice to an error that a full disk of this machine caused; any other error stays unchanged. */
export async function tellingNoSpace<T>(dataDir: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const { message } = error as Error;
    const said = isDiskFull(error) || /ENOSPC|EDQUOT|No space left on device|Disk quota exceeded/i.test(message);
    if (!said && !isFull(dataDir)) throw error;
    const code = error instanceof RuntimeError ? error.code : 'failed';
    throw new RuntimeError(code, `${message}\n${howTo(dataDir)}`, error);
  }
}

/** Returns whether the disk is full, because programs do not always give the cause of their failure. */
function isFull(folder: string): boolean {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize < LEAST_BYTES;
}

const howTo = (dataDir: string) =>
  `The disk of this machine with ${dataDir} has no space left. Free some (quarterdeck_disk_bytes in /metrics says what takes it), then deploy again.`;
