import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { FakeFaults, FakeVerb } from '#runtimes/fake/index.ts';
import type { WorkloadIdentity } from '#runtimes/runtime.ts';

/** Call of the fake runtime by a process of the machine. */
export type JournalEntry = { pid: number; verb: FakeVerb } & WorkloadIdentity;

const fileOf = (dataDir: string): string => path.join(dataDir, 'fake', 'faults');
const journalOf = (dataDir: string): string => path.join(dataDir, 'fake-journal');

/** Sets the faults of the fake runtime in every process of the machine, and turns its journal of calls on. */
export function setFaults(dataDir: string, faults: FakeFaults): void {
  const file = fileOf(dataDir);
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
  writeFileSync(`${file}.new`, JSON.stringify({ ...faults, journal: journalOf(dataDir) }));
  renameSync(`${file}.new`, file);
}

/** Returns the calls that were let through since the journal was last cleared, in order. */
export function readJournal(dataDir: string): JournalEntry[] {
  const file = journalOf(dataDir);
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as JournalEntry);
}

export const clearJournal = (dataDir: string): void => rmSync(journalOf(dataDir), { force: true });
