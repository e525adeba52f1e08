import type { Logger } from 'pino';
import { sql, type Database } from '#platform/database/index.ts';

/** Milliseconds between two signs of life of an API process. */
const BEAT_MS = 20_000;
/** Seconds after its last sign of life for which a machine is still asked. */
const FRESH_SECONDS = 90;

/** Returns the URL of a machine's API, null where none has shown lately. */
export async function findApiUrl(db: Database, machineId: string): Promise<string | null> {
  const row = await db
    .selectFrom('node')
    .select('api_url')
    .where('id', '=', machineId)
    .where('api_seen_at', '>', sql<Date>`now() - make_interval(secs => ${FRESH_SECONDS})`)
    .executeTakeFirst();
  return row?.api_url ?? null;
}

/** Announces the URL of this machine's API to the others for as long as the process serves it. */
export class ApiAnnouncement {
  readonly #db: Database;
  readonly #machineId: string;
  readonly #url: string;
  readonly #log: Logger;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(db: Database, machineId: string, url: string, log: Logger) {
    this.#db = db;
    this.#machineId = machineId;
    this.#url = url;
    this.#log = log;
  }

  /** Announces the URL now and from now on. Resolves when the first announcement is written, or has failed, which is logged. */
  async start(): Promise<void> {
    this.#timer = setInterval(() => this.#beat(), BEAT_MS);
    this.#beat();
    await this.#writing;
  }

  /** Withdraws the URL, so that the other machines stop asking this one. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#writing;
    await this.#write(null).catch((error: unknown) =>
      this.#log.warn({ err: error }, 'cannot take back the URL of this API; other machines ask it in vain for a while'),
    );
  }

  #beat(): void {
    this.#writing = this.#write(this.#url).catch((error: unknown) =>
      this.#log.warn({ err: error }, 'cannot announce the URL of this API to other machines'),
    );
  }

  async #write(url: string | null): Promise<void> {
    await this.#db
      .updateTable('node')
      .set({ api_url: url, api_seen_at: sql`now()` })
      .where('id', '=', this.#machineId)
      // Another process of this machine may have announced itself meanwhile.
      .$if(url === null, (update) => update.where('api_url', '=', this.#url))
      .execute();
  }
}
