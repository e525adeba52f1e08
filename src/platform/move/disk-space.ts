import { existsSync } from 'node:fs';
import { stat, statfs } from 'node:fs/promises';
import path from 'node:path';

/** Room that is needed in a folder, which may not be there yet. */
export interface Need {
  folder: string;
  bytes: number;
}

/** Throws Error if a disk has less free than is needed in all folders on it. */
export async function requireSpace(needs: Need[]): Promise<void> {
  const disks = new Map<number, Need>();
  for (const { folder, bytes } of needs) {
    const there = nearest(folder);
    const { dev } = await stat(there);
    disks.set(dev, { folder: there, bytes: (disks.get(dev)?.bytes ?? 0) + bytes });
  }
  for (const { folder, bytes } of disks.values()) {
    const { bavail, bsize } = await statfs(folder);
    if (bavail * bsize < bytes)
      throw new Error(
        `The disk of ${folder} has ${megabytes(bavail * bsize)} free, and up to ${megabytes(bytes)} are needed: free some, or use another disk. Nothing was changed.`,
      );
  }
}

function nearest(folder: string): string {
  for (let at = path.resolve(folder); ; at = path.dirname(at)) if (existsSync(at)) return at;
}

export const megabytes = (bytes: number): string => `${Math.ceil(bytes / 1_000_000)} MB`;
