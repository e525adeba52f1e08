import { setTimeout as sleep } from 'node:timers/promises';
import { isDatabaseAway } from '#platform/database/index.ts';

const PAUSE_MS = 250;

/**
 * Repeats work while the database is away, for example during a restart. The work must leave nothing half done. Throws the last error after
 * the given seconds. `say` is told once, and again when the database is back.
 */
export async function awaitDatabase<T>(
  work: () => Promise<T>,
  seconds: number,
  say: (text: string) => void,
): Promise<T> {
  let told = false;
  for (const end = performance.now() + seconds * 1000; ; await sleep(PAUSE_MS)) {
    try {
      const result = await work();
      if (told) say('The database answers again');
      return result;
    } catch (error) {
      if (performance.now() > end || !isAway(error)) throw error;
      if (!told) say(`The database does not answer (${(error as Error).message}): trying again for ${seconds} s`);
      told = true;
    }
  }
}

/** Errors that name a setting have what happened as their cause. */
const isAway = (error: unknown): boolean =>
  isDatabaseAway(error) || ((error as Error).cause !== undefined && isDatabaseAway((error as Error).cause));
