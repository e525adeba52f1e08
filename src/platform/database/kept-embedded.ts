import type { Logger } from 'pino';
import { keepRunning } from '#kernel/keep-running.ts';
import type { EmbeddedPostgres } from '#platform/database/embedded.ts';

/** Restarts the embedded PostgreSQL whenever it ends by itself (killed for want of memory, full disk). Returns what ends the watch. */
export const keepEmbeddedPostgres = (server: EmbeddedPostgres, log: Logger): (() => Promise<void>) =>
  keepRunning(
    {
      name: 'the embedded PostgreSQL',
      isRunning: () => server.isRunning(),
      startAgain: () => server.startAgain(),
    },
    log,
  );
