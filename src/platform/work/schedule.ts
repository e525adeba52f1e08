import { endsWithin } from '#kernel/deadline.ts';
import { anySignal } from '#kernel/lease-signal.ts';
import type { Platform } from '#platform/context.ts';
import { sql, type Database } from '#platform/database/index.ts';
import type { Claim, ClaimRequest, WorkKind, WorkReport, WorkStatus } from '#platform/work/kind.ts';
import { requireHeld, type Lease } from '#platform/work/lease.ts';
import { withDate } from '#platform/work/claimed-rows.ts';
import { renewalOf } from '#platform/work/leased-table.ts';
import { WorkLoop } from '#platform/work/loop.ts';

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
/** Tasks of one process at a time: one that takes long keeps the others from nothing. */
const AT_ONCE = 4;

/** Claim on a recurring task. */
interface TaskClaim extends Claim {
  name: string;
}

export interface ScheduleOptions {
  platform: Platform;
  nodeId: string;
  /** Seconds that a claim holds without being renewed. */
  leaseSeconds?: number;
  pollMs?: number;
}

/**
 * Runs recurring tasks, each by one process at a time, with its next time kept in the database: after a downtime a missed
 * task runs once, not as often as it was missed.
 */
export class Schedule {
  readonly #platform: Platform;
  readonly #tasks: Map<string, RecurringTask>;
  readonly #loop: WorkLoop<TaskClaim>;

  constructor(tasks: RecurringTask[], options: ScheduleOptions) {
    this.#platform = options.platform;
    this.#tasks = new Map(tasks.map((task) => [task.name, task]));
    this.#loop = new WorkLoop(this.#kind({ leaseSeconds: 30, pollMs: 5_000, ...options }), options);
  }

  async start(): Promise<void> {
    await this.#platform.db
      .insertInto('scheduled_task')
      .values([...this.#tasks.keys()].map((name) => ({ name })))
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    this.#loop.start();
  }

  /** Ends the tasks under way, which other processes begin again at once. */
  stop(): Promise<void> {
    return this.#loop.stop();
  }

  #kind({ leaseSeconds, pollMs }: Required<ScheduleOptions>): WorkKind<TaskClaim> {
    const taskOf = ({ name }: TaskClaim) => this.#tasks.get(name)!;
    return {
      name: SCHEDULE_REPORT.name,
      leaseSeconds,
      slots: AT_ONCE,
      pollMs,
      claim: (db, request) => claimDue(db, [...this.#tasks.keys()], request),
      renew,
      // After a failure, the task is begun again when the lease has ended.
      giveBack: async (db, claim, stoppedBy) => {
        if (stoppedBy === 'order') await release(db, claim);
      },
      run: (claim, lease) => runTask(this.#platform, taskOf(claim), claim, lease),
      subject: ({ name }) => name,
      fields: ({ name }) => ({ task: name }),
    };
  }
}

/** Claims the tasks that have been due for longest. */
async function claimDue(db: Database, names: string[], { limit, leaseSeconds }: ClaimRequest): Promise<TaskClaim[]> {
  const { rows } = await sql<TaskClaim>`
    update scheduled_task set lock_token = gen_random_uuid(), locked_until = clock_timestamp() + make_interval(secs => ${leaseSeconds})
    where name in (
      select name from scheduled_task where name = any(${names}) and next_at <= clock_timestamp()
        and (locked_until is null or locked_until < clock_timestamp()) order by next_at limit ${limit} for update skip locked)
    returning name, lock_token as token`.execute(db);
  return rows;
}

const renew = renewalOf('scheduled_task', { columns: { id: 'name', token: 'lock_token', lease: 'locked_until' } });

const ofClaim = (db: Database, { name, token }: TaskClaim) =>
  db.updateTable('scheduled_task').where('name', '=', name).where('lock_token', '=', token);

/** Writes the end of a run, whose claim goes on; false if the claim is lost. */
async function writeEnd(db: Database, claim: TaskClaim, everySeconds: number, error: string | null): Promise<boolean> {
  const { numUpdatedRows } = await ofClaim(db, claim)
    .set({ last_error: error, last_ended_at: sql`now()`, next_at: sql`now() + make_interval(secs => ${everySeconds})` })
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

const release = (db: Database, claim: TaskClaim) =>
  ofClaim(db, claim).set({ lock_token: null, locked_until: null }).execute();

/** Runs a task and writes its end. Throws ClaimLost, and WorkStopped for a task that a stop of its process has broken off. */
async function runTask(platform: Platform, task: RecurringTask, claim: TaskClaim, lease: Lease): Promise<void> {
  const log = platform.log.child({ task: task.name });
  const deadline = AbortSignal.timeout(deadlineOf(task) * 1000);
  let isOver = false;
  const work = begin(task, platform, anySignal([lease.signal, deadline])).finally(() => (isOver = true));
  const failure = await failureOf(work, task, deadline);
  // How far the task came is unknown, and this process must not run it beside itself.
  if (lease.signal.aborted) await Promise.allSettled([work]);
  lease.hold();
  if (failure) log.error({ err: failure }, 'a recurring task failed; it is tried again at its next time');
  requireHeld(await writeEnd(platform.db, claim, task.everySeconds, failure?.message ?? null));
  if (!isOver) {
    // It keeps its claim: it must not run beside itself.
    lease.rest(true);
    await work.catch((error: unknown) => log.warn({ err: error }, 'a recurring task that was given up failed'));
  }
  await release(platform.db, claim);
}

/** Waits for the end of a task, but not for long after its deadline. Returns the reason for which it failed. */
async function failureOf(work: Promise<void>, task: RecurringTask, deadline: AbortSignal): Promise<Error | null> {
  try {
    const inTime = await endsWithin(patienceOf(task) * 1000, work);
    return inTime && !deadline.aborted ? null : lateError(task);
  } catch (error) {
    return deadline.aborted ? lateError(task, error) : (error as Error);
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

const lateError = (task: RecurringTask, cause?: unknown): Error =>
  new Error(`It has not ended within ${deadlineOf(task)} s.`, { cause });

/** Rejects where `run` itself throws, too. */
const begin = async (task: RecurringTask, platform: Platform, signal: AbortSignal): Promise<void> =>
  task.run(platform, signal);
