import { anySignal } from '#kernel/lease-signal.ts';
import { randomUUID } from 'node:crypto';
import type { Platform } from '#platform/context.ts';
import { sql } from '#platform/database/index.ts';
import type { WorkReport, WorkStatus } from '#platform/work/kind.ts';
import { withDate } from '#platform/work/leased-table.ts';
import { Poll } from '#platform/work/pace.ts';

/** Task that recurs. It must be safe to run again after it was broken off. */
export interface RecurringTask {
  name: string;
  everySeconds: number;
  /** Seconds after which its signal is aborted; ten minutes unless it says otherwise. */
  deadlineSeconds?: number;
  /** Seconds that it has to end once its signal is aborted; half a minute unless it says otherwise. */
  graceSeconds?: number;
  run(platform: Platform, signal: AbortSignal): Promise<void>;
}

const DEADLINE_SECONDS = 600;
const GRACE_SECONDS = 30;
/** Seconds for writing the end of a task, before another process takes it over. */
const END_SECONDS = 30;
const LOOK_MS = 5_000;
/** Tasks of one process at a time: one that takes long keeps the others from nothing. */
const AT_ONCE = 4;

/** Task that this process runs, fenced by the token. */
interface Claimed {
  task: RecurringTask;
  token: string;
}

/**
 * Runs recurring tasks, each by one process at a time, with its next time kept in the database: after a downtime a missed
 * task runs once, not as often as it was missed.
 */
export class Schedule {
  readonly #platform: Platform;
  readonly #tasks: Map<string, RecurringTask>;
  readonly #abort = new AbortController();
  readonly #running = new Set<Promise<void>>();
  readonly #poll: Poll;
  #looking: Promise<void> | undefined;

  constructor(platform: Platform, tasks: RecurringTask[]) {
    this.#platform = platform;
    this.#tasks = new Map(tasks.map((task) => [task.name, task]));
    this.#poll = new Poll(platform.db, LOOK_MS, () => this.#look());
  }

  async start(): Promise<void> {
    await this.#platform.db
      .insertInto('scheduled_task')
      .values([...this.#tasks.keys()].map((name) => ({ name })))
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    this.#poll.start();
    this.#look();
  }

  async stop(): Promise<void> {
    this.#poll.stop();
    this.#abort.abort();
    await this.#looking;
    await Promise.all(this.#running);
  }

  #look(): void {
    this.#looking ??= this.#beginDue()
      .catch((error: unknown) => this.#platform.log.warn({ err: error }, 'cannot look after recurring tasks'))
      .finally(() => (this.#looking = undefined));
  }

  async #beginDue(): Promise<void> {
    while (this.#running.size < AT_ONCE && !this.#abort.signal.aborted) {
      const claimed = await this.#claim();
      if (!claimed) return;
      const running = this.#run(claimed)
        .catch((error: unknown) =>
          this.#platform.log.warn({ err: error, task: claimed.task.name }, 'cannot write the end of a recurring task'),
        )
        .finally(() => {
          this.#running.delete(running);
          // What waited for its place.
          if (!this.#abort.signal.aborted) this.#look();
        });
      this.#running.add(running);
    }
  }

  /** Claims the task that has been due for longest. Its lock lasts longer than any of them may take. */
  async #claim(): Promise<Claimed | undefined> {
    const token = randomUUID();
    const { rows } = await sql<{ name: string }>`update scheduled_task set lock_token = ${token},
        locked_until = now() + make_interval(secs => ${this.#longest() + END_SECONDS})
      where name = (
        select name from scheduled_task where name = any(${[...this.#tasks.keys()]}) and next_at <= now()
          and (locked_until is null or locked_until < now()) order by next_at limit 1 for update skip locked)
      returning name`.execute(this.#platform.db);
    return rows[0] && { task: this.#tasks.get(rows[0].name)!, token };
  }

  #longest(): number {
    return Math.max(...[...this.#tasks.values()].map(patienceOf));
  }

  async #run({ task, token }: Claimed): Promise<void> {
    let isOver = false;
    const deadline = AbortSignal.timeout(deadlineOf(task) * 1000);
    const work = begin(task, this.#platform, anySignal([this.#abort.signal, deadline])).finally(() => (isOver = true));
    let failure: string | null = null;
    try {
      await inTime(work, task);
      if (deadline.aborted) throw lateError(task);
    } catch (error) {
      failure = (deadline.aborted ? lateError(task) : (error as Error)).message;
      this.#platform.log.error(
        { err: error, task: task.name },
        'a recurring task failed; it is tried again at its next time',
      );
    }
    await this.#end({ task, token }, failure, isOver);
    if (!isOver) void this.#releaseAfter(work, { task, token });
  }

  /** Writes the end of a task. One that still runs keeps its lock for as long again: it must not run beside itself. */
  async #end({ task, token }: Claimed, failure: string | null, isOver: boolean): Promise<void> {
    const ended = await this.#platform.db
      .updateTable('scheduled_task')
      .set({
        locked_until: isOver ? null : sql`now() + make_interval(secs => ${patienceOf(task)})`,
        lock_token: isOver ? null : token,
        last_error: failure,
        last_ended_at: sql`now()`,
        next_at: sql`now() + make_interval(secs => ${task.everySeconds})`,
      })
      .where('name', '=', task.name)
      .where('lock_token', '=', token)
      .executeTakeFirst();
    if (ended.numUpdatedRows === 0n)
      this.#platform.log.warn({ task: task.name }, 'a recurring task took so long that another process has it by now');
  }

  /** Gives the lock back when a task that was given up ends after all. Never rejects: without this the lock runs out. */
  async #releaseAfter(work: Promise<void>, { task, token }: Claimed): Promise<void> {
    const log = this.#platform.log.child({ task: task.name });
    await work.catch((error: unknown) => log.warn({ err: error }, 'a recurring task that was given up failed'));
    await this.#platform.db
      .updateTable('scheduled_task')
      .set({ locked_until: null, lock_token: null })
      .where('name', '=', task.name)
      .where('lock_token', '=', token)
      .execute()
      .catch((error: unknown) => log.warn({ err: error }, 'cannot give the lock of a recurring task back'));
  }
}

/** Figures of recurring tasks: those that are due wait. */
export const SCHEDULE_REPORT: WorkReport = {
  name: 'recurring-tasks',
  async status(db) {
    const isHeld = sql`coalesce(locked_until > clock_timestamp(), false)`;
    const isDue = sql`(not ${isHeld} and next_at <= clock_timestamp())`;
    const { rows } = await sql<WorkStatus>`
      select count(*) filter (where ${isDue}) as waiting, count(*) filter (where ${isHeld}) as running,
        min(next_at) filter (where ${isDue}) as "oldestWaiting", count(*) filter (where last_error is not null) as retried,
        (select json_build_object('at', last_ended_at, 'error', name || ': ' || last_error) from scheduled_task
          where last_error is not null order by last_ended_at desc limit 1) as "lastFailure"
      from scheduled_task`.execute(db);
    return withDate(rows[0]!);
  },
};

const deadlineOf = (task: RecurringTask): number => task.deadlineSeconds ?? DEADLINE_SECONDS;

/** Seconds after which a task that still runs is given up. */
const patienceOf = (task: RecurringTask): number => deadlineOf(task) + (task.graceSeconds ?? GRACE_SECONDS);

const lateError = (task: RecurringTask): Error => new Error(`It has not ended within ${deadlineOf(task)} s.`);

/** Rejects where `run` itself throws, too. */
const begin = async (task: RecurringTask, platform: Platform, signal: AbortSignal): Promise<void> =>
  task.run(platform, signal);

/** Waits for the end of a task. Throws for one that does not heed its signal. */
async function inTime(work: Promise<void>, task: RecurringTask): Promise<void> {
  const { promise: over, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(lateError(task)), patienceOf(task) * 1000);
  try {
    await Promise.race([work, over]);
  } finally {
    clearTimeout(timer);
  }
}
