import { createHash } from 'node:crypto';
import { readdirSync, readlinkSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { identify, readBootId, type ProcessIdentity } from '#runtimes/tools/shim/identity.ts';

/**
 * Suffix of a work folder's name: the pid of its maker, the number of the namespace that has this pid, and a digest that identifies the process.
 * Folders of earlier releases have no namespace in their names.
 */
const WORK = /\.(\d+)-(?:(\d+)-)?([0-9a-f]{12})\.work$/;

/** Milliseconds after which the work of a process that cannot be seen is taken for abandoned; no work takes as long. */
const UNSEEN_MS = 24 * 3600_000;

const digest = ({ bootId, startTime }: ProcessIdentity): string =>
  createHash('sha256').update(`${bootId} ${startTime}`).digest('hex').slice(0, 12);

/** Returns the number of this process's namespace of pids; 0 where the system has none. */
function pidNamespace(): string {
  if (process.platform !== 'linux') return '0';
  return /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? '0';
}

/** Returns the path of a work folder of this process; its name tells later whether the process still runs. */
export function workFolder(path: string): string {
  const self = identify(process.pid, readBootId())!;
  return `${path}.${self.pid}-${pidNamespace()}-${digest(self)}.work`;
}

/**
 * Removes the work folders in a folder whose makers are gone; others stay. A maker in another container that shares the folder cannot be seen:
 * its work is removed a day after it began. `remove` removes one with everything in it.
 */
export function removeAbandoned(
  folder: string,
  remove: (path: string) => void = (path) => rmSync(path, { recursive: true, force: true }),
): void {
  const bootId = readBootId();
  const own = pidNamespace();
  for (const name of namesIn(folder)) {
    const [, pid, namespace = own, expected] = WORK.exec(name) ?? [];
    if (pid === undefined) continue;
    const path = join(folder, name);
    if (namespace === own ? isMaker(Number(pid), bootId, expected!) : isRecent(path)) continue;
    remove(path);
  }
}

/** Returns whether the process of a pid is the one that made a work folder. */
function isMaker(pid: number, bootId: string, expected: string): boolean {
  const present = identify(pid, bootId);
  return present !== null && digest(present) === expected;
}

/** Returns whether work on a folder may have begun within a day; false where the folder is gone. */
function isRecent(path: string): boolean {
  const made = statSync(path, { throwIfNoEntry: false })?.birthtimeMs;
  return made !== undefined && Date.now() - made < UNSEEN_MS;
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
