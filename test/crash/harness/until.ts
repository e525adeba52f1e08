import { setTimeout as sleep } from 'node:timers/promises';

const LOOK_MS = 20;

/**
 * Waits until `look` returns a truthy value, and returns it. The error of a timeout quotes `what`; as a function it may describe the state
 * found instead.
 */
export async function until<T>(
  what: string | (() => unknown),
  look: () => T | Promise<T>,
  timeoutMs = 60_000,
  everyMs = LOOK_MS,
): Promise<NonNullable<Exclude<T, false>>> {
  for (const end = performance.now() + timeoutMs; ;) {
    const seen = await look();
    if (seen) return seen as NonNullable<Exclude<T, false>>;
    if (performance.now() > end)
      throw new Error(`Not within ${timeoutMs} ms: ${typeof what === 'string' ? what : String(await what())}`);
    await sleep(everyMs);
  }
}
