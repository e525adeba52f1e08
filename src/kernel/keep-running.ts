import { setTimeout as sleep } from 'node:timers/promises';

const LOOK_MS = 1_000;
/** Longest pause between attempts to start what does not start, as on a disk that is full. */
const LONGEST_PAUSE_MS = 30_000;

/** Process that outlives this one and may end by itself. */
export interface Kept {
  /** Name for the log, such as `the embedded PostgreSQL`. */
  name: string;
  isRunning(): boolean | Promise<boolean>;
  /** Starts it, or finds that another process of this program has started it. */
  startAgain(): Promise<unknown>;
}

export interface KeptLog {
  warn(text: string): void;
  error(text: string): void;
  error(fields: object, text: string): void;
}

/**
 * Restarts a process whenever it ends by itself. Returns a function that ends the watch, not the process, and waits for a start that is
 * under way.
 */
export function keepRunning(kept: Kept, log: KeptLog): () => Promise<void> {
  const stopped = new AbortController();
  const looking = look(kept, log, stopped.signal);
  return async () => {
    stopped.abort();
    await looking;
  };
}

async function look(kept: Kept, log: KeptLog, stopped: AbortSignal): Promise<void> {
  for (let pause = LOOK_MS; await passed(pause, stopped);)
    pause =
      (await kept.isRunning()) || (await startsAgain(kept, log)) ? LOOK_MS : Math.min(pause * 2, LONGEST_PAUSE_MS);
}

async function startsAgain({ name, startAgain }: Kept, log: KeptLog): Promise<boolean> {
  log.error(`${name} has ended: it is started again`);
  try {
    await startAgain();
    log.warn(`${name} runs again`);
    return true;
  } catch (error) {
    log.error({ err: error }, `${name} does not start`);
    return false;
  }
}

/** Waits; false where it was told to stop. */
const passed = (ms: number, stopped: AbortSignal): Promise<boolean> =>
  sleep(ms, true, { signal: stopped }).catch(() => false);
