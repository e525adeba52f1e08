import { statfsSync } from 'node:fs';
import { RuntimeError } from '#runtimes/runtime.ts';
import { isDiskFull } from '#runtimes/tools/shim/state.ts';

/** Less than this is no space. */
const LEAST_BYTES = 1 << 20;

/** Says what to do where work failed because the disk of this machine is full; any other error stays what it is. */
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

/** Programs don't always say why they failed: what they left on the disk does. */
function isFull(folder: string): boolean {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize < LEAST_BYTES;
}

const howTo = (dataDir: string) =>
  `The disk of this machine with ${dataDir} has no space left. Free some (quarterdeck_disk_bytes in /metrics says what takes it), then deploy again.`;
