/** Beginning of the lines by which the proxy reports a fault of its own. */
const FAULT = 'A fault of the proxy itself:';

function report(error: unknown): void {
  console.error(FAULT, error instanceof Error ? error.stack : String(error));
}

/** Runs a part of one exchange; what it throws is reported and ends that exchange only. */
export function contain(run: () => void, end: () => void): void {
  try {
    run();
  } catch (error) {
    report(error);
    end();
  }
}

/**
 * Keeps the process alive whatever nobody foresaw: all visitors share it, and one of them must not be able to end it for the
 * others. Exchanges share no state but connections that are closed on errors, so that it is safe to go on.
 */
export function surviveFaults(): void {
  process.on('uncaughtException', report);
  process.on('unhandledRejection', report);
}
