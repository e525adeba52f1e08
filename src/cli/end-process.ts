import { afterPrinted } from '#cli/print.ts';

/** Milliseconds that the process has to end by itself once its command has ended. */
const LEAVE_MS = 500;

/**
 * Ends the process with this status: by itself where nothing is left, else by force once its output is written. What hangs or was left
 * behind after an error holds sockets and timers that would keep the process alive for ever.
 */
export function endProcess(status: number): void {
  process.exitCode = status;
  afterPrinted(() => setTimeout(() => process.exit(), LEAVE_MS).unref());
}
