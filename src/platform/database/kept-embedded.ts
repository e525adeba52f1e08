import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { EmbeddedPostgres } from '#platform/database/embedded.ts';

const LOOK_MS = 1_000;
/** Longest pause between attempts to start a server that does not start, as on a disk that is full. */
const LONGEST_PAUSE_MS = 30_000;

/**
 * Restarts the embedded PostgreSQL whenever it ends by itself (killed for want of memory, full disk). Returns a function that ends the
 * watch, not the server, and waits for a start that is under way.
 */
export function keepEmbeddedPostgres(server: EmbeddedPostgres, log: Logger): () => Promise<void> {
  const stopped = new AbortController();
  const looking = look(server, log, stopped.signal);
  return async () => {
    stopped.abort();
    await looking;
  };
}

async function look(server: EmbeddedPostgres, log: Logger, stopped: AbortSignal): Promise<void> {
  for (let pause = LOOK_MS; await passed(pause, stopped);)
    pause = server.isRunning() || (await startsAgain(server, log)) ? LOOK_MS : Math.min(pause * 2, LONGEST_PAUSE_MS);
}

async function startsAgain(server: EmbeddedPostgres, log: Logger): Promise<boolean> {
  log.error('the embedded PostgreSQL has ended: it is started again');
  try {
    await server.startAgain();
    log.warn('the embedded PostgreSQL runs again');
    return true;
  } catch (error) {
    log.error({ err: error }, 'the embedded PostgreSQL does not start');
    return false;
  }
}

/** Waits; false where it was told to stop. */
const passed = (ms: number, stopped: AbortSignal): Promise<boolean> =>
  sleep(ms, true, { signal: stopped }).catch(() => false);
