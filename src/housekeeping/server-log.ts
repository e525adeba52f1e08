import { copyFileSync, existsSync, statSync, truncateSync } from 'node:fs';

/** Bytes above which the log of the embedded PostgreSQL begins anew; as much of it is kept beside. */
const MOST_BYTES = 32 << 20;

/**
 * Keeps the embedded PostgreSQL's log from growing for ever. The server has it open for appending and goes on at its new end; what it
 * writes in the moment between the copy and the cut is lost.
 */
export function trimServerLog(file: string, mostBytes = MOST_BYTES): void {
  if (!existsSync(file) || statSync(file).size <= mostBytes) return;
  copyFileSync(file, `${file}.1`);
  truncateSync(file);
}
