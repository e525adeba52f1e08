/** Milliseconds that the process has to end by itself once its command has ended. */
const LEAVE_MS = 500;

/**
 * Ends the process with this status: by itself where nothing is left, else by force once its output is written. What hangs or was left
 * behind after an error holds sockets and timers that would keep the process alive for ever.
 */
export function endProcess(status: number): void {
  process.exitCode = status;
  // Nobody reads the output any more: that changes nothing about the end.
  process.stdout.once('error', () => undefined);
  process.stdout.write('', () => setTimeout(() => process.exit(), LEAVE_MS).unref());
}
