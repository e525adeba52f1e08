import { closeSync, mkdirSync, openSync, readFileSync, rmSync, statSync, writeSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** Longest that a process waits for others that start the same; each takes up to a minute. */
const WAIT_MS = 120_000;
const LOOK_MS = 20;
/** Age from which a mark of a process that removes a stale lock counts as left behind: removing takes no time. */
const BREAK_MS = 5_000;

/** Process that holds the lock; its time of start tells it from a later one with the same id. */
interface Holder {
  pid: number;
  began: string;
}

/**
 * Does work on a folder while no other process of this machine does: processes that start the same server or proxy at once do so one after the
 * other, and find it running then. A lock whose process has ended is taken over. Throws after two minutes.
 */
export async function withStartLock<T>(folder: string, work: () => Promise<T>, waitMs = WAIT_MS): Promise<T> {
  mkdirSync(folder, { recursive: true });
  const file = path.join(folder, 'start.lock');
  await take(file, waitMs);
  try {
    return await work();
  } finally {
    rmSync(file, { force: true });
  }
}

async function take(file: string, waitMs: number): Promise<void> {
  const content = JSON.stringify({ pid: process.pid, began: beginningOf(process.pid) } satisfies Holder);
  for (const end = performance.now() + waitMs; ; await sleep(LOOK_MS)) {
    if (create(file, content)) return;
    const text = read(file);
    if (text !== undefined && !isHeld(file, text)) removeStale(file, text);
    else if (performance.now() > end)
      throw new Error(
        `${file} is held by process ${holderOf(text)?.pid ?? 'unknown'}, which has not finished its start within ${waitMs / 1000} s: end that process.`,
      );
  }
}

/** Creates a file with its content; false where there is one. */
function create(file: string, content: string): boolean {
  try {
    const descriptor = openSync(file, 'wx', 0o600);
    writeSync(descriptor, content);
    closeSync(descriptor);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** Returns the text of the file; undefined if it is gone meanwhile. */
function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function holderOf(text: string | undefined): Holder | undefined {
  try {
    return JSON.parse(text ?? '') as Holder;
  } catch {
    return undefined; // Just created, and not written yet; or its process was killed in between.
  }
}

function isHeld(file: string, text: string): boolean {
  const holder = holderOf(text);
  if (!holder) return ageOf(file) < BREAK_MS;
  return beginningOf(holder.pid) === holder.began;
}

/** Returns the start time of a process in a form of the system's; empty where it has ended. */
function beginningOf(pid: number): string {
  try {
    if (process.platform !== 'linux') return process.kill(pid, 0) ? 'alive' : '';
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ');
    return fields[0] === 'Z' ? '' : fields[19]!;
  } catch (error) {
    // Another account's process lives, too.
    return (error as NodeJS.ErrnoException).code === 'EPERM' ? 'alive' : '';
  }
}

/** Removes a lock that is still the stale one, in one process at a time: a second one would remove the next process's lock. */
function removeStale(file: string, text: string): void {
  const mark = `${file}.break`;
  if (!create(mark, '')) {
    if (ageOf(mark) > BREAK_MS) rmSync(mark, { force: true });
    return;
  }
  try {
    if (read(file) === text) rmSync(file, { force: true });
  } finally {
    rmSync(mark, { force: true });
  }
}

/** Milliseconds since a file was written; 0 where it is gone. */
function ageOf(file: string): number {
  const found = statSync(file, { throwIfNoEntry: false });
  return found ? Date.now() - found.mtimeMs : 0;
}
