import { setTimeout as sleep } from 'node:timers/promises';

const INTERVAL_MS = 50;

/** Waits until a condition holds; throws after two minutes with the name of what was waited for. */
export async function waitFor(what: string, holds: () => Promise<boolean>, timeoutMs = 120_000): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`${what} did not come within ${timeoutMs / 1000} s.`);
    await sleep(INTERVAL_MS);
  }
}
