import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { makePrivate, readJson, writeAtomically } from '#kernel/private-files.ts';
import type { TaskEnd, TaskSpec } from '#runtimes/runtime.ts';
import { stateFile } from '#runtimes/tools/shim/state.ts';

/** Milliseconds between two checks of a running process. */
export const LOOK_MS = 50;
/** Milliseconds that a shim may take to write its state if the process that started it was killed meanwhile. */
export const APPEARS_MS = 3000;

/** Record of an execution, `task.json`, written before all its other files: the data that its removal needs besides its folder. */
export interface TaskRecord {
  format: 1;
  name: string;
  image: string;
  graceMs: number;
}

/** End of an execution with its output, `end.json` (mode 0600); only the size of an output that is too large. */
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

/** Returns whether the execution's shim has written its state, which it does before it starts the command. */
export const hasState = (directory: string): boolean => existsSync(stateFile(directory));
