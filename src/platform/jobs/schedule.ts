import type { Platform } from '#platform/context.ts';
import { sql } from '#platform/database/index.ts';

/** Something that recurs. It must be safe to run again after it was broken off. */
export interface RecurringTask {
  name: string;
  everySeconds: number;
  run(platform: Platform, signal: AbortSignal): Promise<void>;
}

/** Seconds that a task may take before another process takes it over. */
const LOCK_SECONDS = 600;
const LOOK_MS = 5_000;

/**
 * Runs recurring tasks, each by one process at a time over all replicas, with its next time kept in the database: after a downtime a missed
 * task runs once, not as often as it was missed.
 */
export class Schedule {
  readonly #platform: Platform;
  readonly #tasks: RecurringTask[];
  readonly #abort = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;

  constructor(platform: Platform, tasks: RecurringTask[]) {
    this.#platform = platform;
    this.#tasks = tasks;
  }

  async start(): Promise<void> {
    await this.#platform.db
      .insertInto('scheduled_task')
      .values(this.#tasks.map(({ name }) => ({ name })))
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    this.#timer = setInterval(() => this.#look(), LOOK_MS);
    this.#look();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#abort.abort();
    await this.#looking;
  }

  #look(): void {
    this.#looking ??= this.#runDue().finally(() => (this.#looking = undefined));
  }

  async #runDue(): Promise<void> {
    for (const task of this.#tasks) {
      if (this.#abort.signal.aborted) return;
      try {
        if (await this.#claim(task)) await this.#run(task);
      } catch (error) {
        this.#platform.log.warn({ err: error, task: task.name }, 'cannot look after a recurring task');
      }
    }
  }

  async #claim(task: RecurringTask): Promise<boolean> {
    const claimed = await this.#platform.db
      .updateTable('scheduled_task')
      .set({ locked_until: sql`now() + make_interval(secs => ${LOCK_SECONDS})` })
      .where('name', '=', task.name)
      .where('next_at', '<=', sql<Date>`now()`)
      .where((eb) => eb.or([eb('locked_until', 'is', null), eb('locked_until', '<', sql<Date>`now()`)]))
      .executeTakeFirst();
    return claimed.numUpdatedRows > 0n;
  }

  async #run(task: RecurringTask): Promise<void> {
    let failure: string | null = null;
    try {
      await task.run(this.#platform, this.#abort.signal);
    } catch (error) {
      failure = (error as Error).message;
      this.#platform.log.error(
        { err: error, task: task.name },
        'a recurring task failed; it is tried again at its next time',
      );
    }
    await this.#platform.db
      .updateTable('scheduled_task')
      .set({
        locked_until: null,
        last_error: failure,
        last_ended_at: sql`now()`,
        next_at: sql`now() + make_interval(secs => ${task.everySeconds})`,
      })
      .where('name', '=', task.name)
      .execute();
  }
}
