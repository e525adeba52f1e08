import { statfsSync } from 'node:fs';
import { RuntimeError } from '#runtimes/runtime.ts';
import { isDiskFull } from '#runtimes/tools/shim/state.ts';

/** Free bytes below which the disk counts as full. */
const LEAST_BYTES = 1 << 20;

const SAID = /ENOSPC|EDQUOT|No space left on device|Disk quota exceeded/i;

/**
 * Adds advice to an error that a full disk of this machine caused; any other error stays unchanged. What an instance writes says nothing of it:
 * the storage that it found full may be another one.
 */
export async function tellingNoSpace<T>(dataDir: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const { message } = error as Error;
    const known = error instanceof RuntimeError ? error : null;
    const said = isDiskFull(error) || (known?.code !== 'not_ready' && SAID.test(message));
    if (!said && !isFull(dataDir)) throw error;
    const told = new RuntimeError(known?.code ?? 'failed', `${message}\n${howTo(dataDir)}`, error);
    throw known?.lastLines ? told.withLines(known.lastLines) : told;
  }
}

/** Returns whether the disk is full, because programs do not always give the cause of their failure. */
function isFull(folder: string): boolean {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize < LEAST_BYTES;
}

const howTo = (dataDir: string) =>
  `The disk of this machine with ${dataDir} has no space left. Free some (quarterdeck_disk_bytes in /metrics says what takes it), then deploy again.`;
