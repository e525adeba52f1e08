import { readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { makePrivate, writeAtomically } from '#kernel/private-files.ts';
import { withStartLock } from '#kernel/start-lock.ts';

/** Record of a move in the data directory. While there is one the service does not start. */
export interface MoveRecord {
  /** `packing`: not ended yet, or broken off. `moved`: the archive is complete. `unpacking`: of the new machine, until it is done. */
  state: 'packing' | 'moved' | 'unpacking';
  /** Archive that is written or read. */
  file: string;
  /** ISO 8601: the time at which the state began. */
  since: string;
  /** Id of the archive. */
  id: string;
}

/** Returns the folder of the record and of files in between. */
export const moveFolder = (dataDir: string): string => path.join(dataDir, 'move');
const fileOf = (dataDir: string): string => path.join(moveFolder(dataDir), 'record.json');

/** Reads the record; null without one. */
export function readRecord(dataDir: string): MoveRecord | null {
  try {
    return JSON.parse(readFileSync(fileOf(dataDir), 'utf8')) as MoveRecord;
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return null;
    throw new Error(`${fileOf(dataDir)} cannot be read, so that it is not known whether the installation was moved.`, {
      cause: error,
    });
  }
}

export function writeRecord(dataDir: string, record: MoveRecord): void {
  makePrivate(moveFolder(dataDir));
  writeAtomically(fileOf(dataDir), `${JSON.stringify(record)}\n`, { isSynced: true });
}

/** Removes the record with everything in between. */
export function removeRecord(dataDir: string): void {
  // First, so that a kill leaves no record without its folder's other files in use.
  rmSync(fileOf(dataDir), { force: true });
  rmSync(moveFolder(dataDir), { recursive: true, force: true });
}

/** Throws Error if the installation was moved away, or if a move of it is not complete. */
export function refuseMoved(dataDir: string): void {
  const record = readRecord(dataDir);
  if (record) throw new Error(`The service does not start: ${sentences(record)}`);
}

/** Returns what a record means, and what to do. */
export function sentences({ state, file, since }: MoveRecord): string {
  if (state === 'moved')
    return `this installation was moved away at ${since} with ${file}, and two of them would act on the same things. If the move is given up, run \`quarterdeck move undo\`, and never start the other one.`;
  if (state === 'packing')
    return `\`quarterdeck move pack\` began at ${since} and has not ended. Run it again, or give it up with \`quarterdeck move undo\`.`;
  return `\`quarterdeck move unpack ${file}\` began at ${since} and has not ended: run it again.`;
}

/** Runs a step of a move while no other process does. Throws Error if one does. */
export async function withMoveLock<T>(dataDir: string, work: () => Promise<T>): Promise<T> {
  let isTaken = false;
  try {
    return await withStartLock(
      path.join(dataDir, 'move'),
      () => {
        isTaken = true;
        return work();
      },
      0,
    );
  } catch (error) {
    if (isTaken) throw error;
    throw new Error(`Another \`quarterdeck move\` works on ${dataDir}: wait for its end.`, { cause: error });
  }
}
