import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { removeTree } from '#runtimes/host/remove-tree.ts';
import { identify, readBootId, type ProcessIdentity } from '#runtimes/tools/shim/identity.ts';

/** Suffix of a work folder's name: the pid of its maker, and a digest that identifies the process of that pid. */
const WORK = /\.(\d+)-([0-9a-f]{12})\.work$/;

const digest = ({ bootId, startTime }: ProcessIdentity): string =>
  createHash('sha256').update(`${bootId} ${startTime}`).digest('hex').slice(0, 12);

/** Returns the path of a work folder of this process; its name tells later whether the process still runs. */
export function workFolder(path: string): string {
  const self = identify(process.pid, readBootId())!;
  return `${path}.${self.pid}-${digest(self)}.work`;
}

/** Removes the work folders in a folder whose makers are gone; others stay. */
export function removeAbandoned(folder: string): void {
  const bootId = readBootId();
  for (const name of namesIn(folder)) {
    const [, pid, expected] = WORK.exec(name) ?? [];
    if (pid === undefined) continue;
    const present = identify(Number(pid), bootId);
    if (present === null || digest(present) !== expected) removeTree(join(folder, name));
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
