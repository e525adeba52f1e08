/** Prefix of the lines in which the proxy reports its own faults. */
const FAULT = 'A fault of the proxy itself:';

function report(error: unknown): void {
  console.error(FAULT, error instanceof Error ? error.stack : String(error));
}

/** Runs a part of one exchange; an exception is reported and ends that exchange only. */
export function contain(run: () => void, end: () => void): void {
  try {
    run();
  } catch (error) {
    report(error);
    end();
  }
}

/**
 * Keeps the process alive after unforeseen errors: all visitors share it, and one of them must not be able to end it for the others.
 * Exchanges share no state but connections that are closed on errors, so it is safe to continue.
 */
export function surviveFaults(): void {
  process.on('uncaughtException', report);
  process.on('unhandledRejection', report);
}
