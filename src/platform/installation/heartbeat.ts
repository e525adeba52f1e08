import { hostname } from 'node:os';
import type { Platform } from '#platform/context.ts';
import { sql, type Database } from '#platform/database/index.ts';
import { Repeated } from '#platform/work/repeated.ts';

/** Milliseconds between two signs of life of a process. */
const BEAT_MS = 20_000;

/** Shows for as long as the process runs that its machine is there. */
export class Heartbeat {
  readonly #beats: Repeated;
  #timer: NodeJS.Timeout | undefined;

  constructor({ db, log }: Pick<Platform, 'db' | 'log'>, nodeId: string) {
    this.#beats = new Repeated(
      () => noteSeen(db, nodeId),
      (error) =>
        log.warn({ err: error }, 'cannot show that this machine is there; others take it for lost after a while'),
    );
  }

  /** Resolves after the first sign of life, or when it has failed, which is logged. */
  async start(): Promise<void> {
    this.#timer = setInterval(() => void this.#beats.request(), BEAT_MS);
    await this.#beats.request();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#beats.settled();
  }
}

/** Records that a machine is there, also if it was forgotten meanwhile. */
async function noteSeen(db: Database, nodeId: string): Promise<void> {
  await db
    .insertInto('node')
    .values({ id: nodeId, name: hostname() })
    .onConflict((conflict) => conflict.column('id').doUpdateSet({ seen_at: sql`now()` }))
    .execute();
}
