import type { Logger } from 'pino';
import type { Database } from '#platform/database/index.ts';
import { followFailover } from '#platform/installation/failover.ts';
import { readInstallation } from '#platform/installation/index.ts';

const LOOK_MS = 1_000;

/** Installation of this process: its epoch follows that of the database. */
interface Base {
  database: { db: Database };
  installation: { epoch: number };
  log: Logger;
}

/**
 * Runs background work while the installation may be written, and stops it in the read-only state after a restore
 * (docs/contributing/engine.md: workers claim nothing, schedules and webhooks do not run). Reads the state from the database every second,
 * because other processes end it and raise the epoch.
 */
export class BackgroundSwitch {
  readonly #base: Base;
  readonly #begin: () => Promise<() => Promise<void>>;
  #timer: NodeJS.Timeout | undefined;
  #end: (() => Promise<void>) | undefined;
  #looking: Promise<void> | undefined;
  #told = false;

  private constructor(base: Base, begin: () => Promise<() => Promise<void>>) {
    this.#base = base;
    this.#begin = begin;
  }

  /** `begin` starts the work and answers what ends it. Resolves when it has begun, or is known not to begin yet. */
  static async start(base: Base, begin: () => Promise<() => Promise<void>>): Promise<BackgroundSwitch> {
    const made = new BackgroundSwitch(base, begin);
    await made.#follow();
    // Not before: a look beside a slow beginning would begin everything a second time.
    made.#timer = setInterval(() => made.#look(), LOOK_MS);
    return made;
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#looking;
    await this.#end?.();
  }

  #look(): void {
    this.#looking ??= this.#follow()
      .catch((error: unknown) =>
        this.#base.log.warn({ err: error }, 'cannot look whether the installation is read-only'),
      )
      .finally(() => (this.#looking = undefined));
  }

  async #follow(): Promise<void> {
    const raised = await followFailover(this.#base.database.db);
    if (raised !== null)
      this.#base.log.warn(
        { epoch: raised },
        'the database is on another timeline: a standby took over, and what was committed last may be lost',
      );
    const { epoch, readOnlySince } = await readInstallation(this.#base.database.db);
    // Before the work begins: it names what it makes by the epoch.
    this.#base.installation.epoch = epoch;
    if (readOnlySince) {
      if (!this.#told)
        this.#base.log.warn(
          { since: readOnlySince },
          'the installation is read-only after a restore: nothing is deployed, scheduled or sent until `quarterdeck restore --accept`',
        );
      this.#told = true;
      const end = this.#end;
      this.#end = undefined;
      await end?.();
    } else if (!this.#end) {
      this.#end = await this.#begin();
      this.#told = false;
    }
  }
}
