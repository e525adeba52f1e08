import { statfs } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { anySignal } from '#kernel/lease-signal.ts';
import { RuntimeError } from '#runtimes/runtime.ts';
import { folderBytes } from '#runtimes/tools/folder-size.ts';

/** What one piece of work may take of the disk of this machine. */
export interface DiskLimits {
  /** Bytes that it may take. */
  mostBytes: number;
  /** Bytes of the disk that stay free for everybody else; 0 for none. */
  reservedBytes: number;
}

/** Work that fills folders of this machine. */
export interface DiskWork<T> {
  /** Begins the sentence that says what took too much, such as `The checkout`. */
  name: string;
  /** Folders that it fills. What lies in them before counts, too. */
  folders: readonly string[];
  /** Folder, which is there, on the file system that has to keep its reserve. */
  disk: string;
  /** Absent is no limit. */
  limits: DiskLimits | undefined;
  signal: AbortSignal;
  /** Does the work; the signal is aborted when it takes too much. */
  run(signal: AbortSignal): Promise<T>;
}

/** Pause between two looks at what work has taken. */
const LOOK_MS = 1000;
const MIB = 2 ** 20;

/**
 * Does work within limits of disk. It does not begin, or is ended, while the disk has less than its reserve, and ends when it takes more
 * than it may; work that is done before the next look is measured at its end. Throws RuntimeError `failed` that says which.
 */
export async function withinDisk<T>(work: DiskWork<T>): Promise<T> {
  if (!work.limits) return work.run(work.signal);
  const { limits, signal } = work;
  await refuseReserved(work.disk, limits);
  const over = new AbortController();
  const done = new AbortController();
  const watched = watch({ ...work, limits }, over, done.signal);
  try {
    const result = await work.run(anySignal([signal, over.signal]));
    await refuseTooMuch({ ...work, limits }, signal);
    return result;
  } catch (error) {
    // What the work says of its end is only that it was ended.
    if (over.signal.aborted && !signal.aborted) throw over.signal.reason;
    throw error;
  } finally {
    done.abort();
    await watched;
  }
}

/** Looks at intervals until the work is done; aborts `over` with what it found, or with why it could not look. */
async function watch(work: Limited, over: AbortController, done: AbortSignal): Promise<void> {
  while (!over.signal.aborted) {
    try {
      await sleep(LOOK_MS, undefined, { signal: done });
      await refuseReserved(work.disk, work.limits);
      await refuseTooMuch(work, done);
    } catch (error) {
      if (done.aborted) return;
      over.abort(error);
    }
  }
}

type Limited = Pick<DiskWork<unknown>, 'name' | 'folders' | 'disk'> & { limits: DiskLimits };

async function refuseTooMuch({ name, folders, limits }: Limited, signal: AbortSignal): Promise<void> {
  let bytes = 0;
  for (const folder of folders) bytes += await folderBytes(folder, signal);
  if (bytes <= limits.mostBytes) return;
  throw new RuntimeError(
    'failed',
    `${name} takes more than the ${mebibytes(limits.mostBytes)} of disk that the operator allows.`,
  );
}

async function refuseReserved(disk: string, { reservedBytes }: DiskLimits): Promise<void> {
  if (reservedBytes === 0) return;
  const { bavail, bsize } = await statfs(disk);
  if (bavail * bsize >= reservedBytes) return;
  throw new RuntimeError(
    'failed',
    `The disk of this machine has less than the ${mebibytes(reservedBytes)} left that the operator keeps free. Ask the operator to free some, then deploy again.`,
  );
}

const mebibytes = (bytes: number): string => `${Math.round(bytes / MIB)} MiB`;

/** Returns the limits of the disk that one piece of work may take, from the settings in MiB. */
export const diskLimits = ({ diskReserveMb }: { diskReserveMb: number }, mostMb: number): DiskLimits => ({
  mostBytes: mostMb * 2 ** 20,
  reservedBytes: diskReserveMb * 2 ** 20,
});
