import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Errors after which nothing was done and the same work succeeds: deadlocks, serialisation failures, statements prepared before a table was
 * changed.
 */
const PASSING = ['40P01', '40001', '0A000'];
const ATTEMPTS = 5;

/** Pause in milliseconds, times the attempt, before work is repeated. It keeps the work from the same conflict. */
const PAUSE_MS = 40;

/** Repeats work after transient errors, so the work must do nothing outside the database. Throws the last error after five attempts. */
export async function untilDone<T>(work: () => Promise<T>, onAgain?: (attempt: number) => void): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (attempt === ATTEMPTS || !PASSING.includes((error as { code?: string }).code ?? '')) throw error;
      onAgain?.(attempt);
      await sleep(Math.random() * PAUSE_MS * attempt);
    }
  }
}
