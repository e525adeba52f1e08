import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { TaskEnd, TaskSpec } from '#runtimes/runtime.ts';
import { makePrivate, readJson, stateFile, writeAtomically } from '#runtimes/tools/shim/state.ts';

/** Milliseconds between two looks at what runs. */
export const LOOK_MS = 50;
/** How long a shim that was started by a process that was killed over it may take to write its state. */
export const APPEARS_MS = 3000;

/** `task.json` of an execution, written before anything of it: what its removal needs besides its folder. */
export interface TaskRecord {
  format: 1;
  name: string;
  image: string;
  graceMs: number;
}

/** `end.json`: how it ended, with its output (the file has mode 0600); where that was too large, how large. */
export interface EndRecord {
  format: 1;
  end: TaskEnd;
  outputBytes: number;
}

const recordFile = (directory: string) => join(directory, 'task.json');
const endFile = (directory: string) => join(directory, 'end.json');

export const readTask = (directory: string) => readJson<TaskRecord>(recordFile(directory));

export function writeTask(directory: string, { name, image, gracePeriodSeconds }: TaskSpec): void {
  const record: TaskRecord = { format: 1, name, image, graceMs: gracePeriodSeconds * 1000 };
  makePrivate(directory);
  writeAtomically(recordFile(directory), JSON.stringify(record));
}

export const readEnd = (directory: string) => readJson<EndRecord>(endFile(directory));

export const writeEnd = (directory: string, record: EndRecord): void =>
  writeAtomically(endFile(directory), JSON.stringify(record));

/** Whether its shim ever wrote its state, which it does before it starts the command. */
export const hasState = (directory: string): boolean => existsSync(stateFile(directory));
