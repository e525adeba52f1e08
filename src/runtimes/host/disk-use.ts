import { join } from 'node:path';
import type { DiskUse } from '#runtimes/runtime.ts';
import { folderBytes } from '#runtimes/tools/folder-size.ts';

/** What the host runtime keeps in the data directory. */
export async function measureDisk(dataDir: string, signal: AbortSignal): Promise<DiskUse> {
  const of = (name: string) => folderBytes(join(dataDir, name), signal);
  // One after the other: reading folders is what makes it slow for everybody else.
  const images = await of('images');
  const volumes = await of('volumes');
  return { images, volumes, workloads: await of('host') };
}
