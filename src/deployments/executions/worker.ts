import {
  claimExecutions,
  giveBackExecution,
  renewExecutions,
  type ClaimedExecution,
} from '#deployments/executions/claims.ts';
import { runExecution, type ExecutionParts, type ExecutionStop } from '#deployments/executions/run.ts';
import { cancelStopped, fireDue, followReleases } from '#deployments/executions/schedule.ts';
import { sweepExecutions } from '#deployments/executions/sweep.ts';
import { leaseController } from '#deployments/executor/lease-signal.ts';

const LOOK_MS = 1_000;
/** A worker that could not renew for this long leaves its work to others, 5 s before the lease ends. */
const GIVE_UP_MS = 10_000;
/** Looks between two sweeps of what executions left. */
const SWEEP_EVERY = 10;

interface Running {
  claim: ClaimedExecution;
  abort: AbortController;
  done: Promise<void>;
}

/**
 * Runs services by their schedules, beside deployments. Everything is in the database, so that several workers run each due time once, and what
 * a worker that is gone had begun is taken over: it is followed on, and never begun again.
 */
export class ExecutionWorker {
  readonly #parts: ExecutionParts;
  readonly #slots: number;
  readonly #running = new Map<string, Running>();
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #stopping = false;
  #looks = 0;
  #lastRenewal = performance.now();

  constructor(parts: ExecutionParts, slots: number) {
    this.#parts = parts;
    this.#slots = slots;
  }

  start(): void {
    this.#timer = setInterval(() => void this.look(), LOOK_MS);
    void this.look();
  }

  /** Leaves what runs to the next worker: it goes on meanwhile. */
  async stop(): Promise<void> {
    this.#stopping = true;
    clearInterval(this.#timer);
    await this.#looking;
    for (const { abort } of this.#running.values()) abort.abort('give-back' satisfies ExecutionStop);
    await Promise.all([...this.#running.values()].map(({ done }) => done));
  }

  /** Looks once at what is due, runs or is left; a look that is under way already is joined. */
  look(): Promise<void> {
    return (this.#looking ??= this.#lookOnce()
      .catch((error: unknown) => this.#parts.platform.log.warn({ err: error }, 'cannot look after executions'))
      .finally(() => (this.#looking = undefined)));
  }

  async #lookOnce(): Promise<void> {
    const { platform, kinds } = this.#parts;
    const { db } = platform;
    this.#watchLease();
    await this.#renew();
    if (this.#stopping) return;
    await followReleases(db, kinds);
    while (await fireDue(db));
    await cancelStopped(db);
    await this.#fill();
    if (this.#looks++ % SWEEP_EVERY === 0) await this.sweep();
  }

  /** Removes what ended executions left in the runtimes of this machine. */
  sweep(): Promise<void> {
    return sweepExecutions(this.#parts);
  }

  async #fill(): Promise<void> {
    const free = this.#slots - this.#running.size;
    if (free <= 0 || this.#stopping) return;
    if (this.#running.size === 0) this.#lastRenewal = performance.now();
    for (const claim of await claimExecutions(this.#parts.platform.db, this.#parts.nodeId, free)) this.#begin(claim);
  }

  #begin(claim: ClaimedExecution): void {
    const abort = leaseController(() => this.#isLeaseOver());
    const running: Running = { claim, abort, done: Promise.resolve() };
    this.#running.set(claim.token, running);
    running.done = this.#carryOut(claim, abort).finally(() => this.#running.delete(claim.token));
  }

  async #carryOut(claim: ClaimedExecution, abort: AbortController): Promise<void> {
    const { db, log } = this.#parts.platform;
    try {
      await runExecution(this.#parts, claim, abort);
    } catch (error) {
      const inOrder = abort.signal.reason === 'give-back';
      if (!inOrder)
        log.warn(
          { err: error, executionId: claim.id },
          'stopped working on an execution; another worker goes on with it',
        );
      if (inOrder)
        await giveBackExecution(db, claim).catch((cause: unknown) =>
          log.warn(
            { err: cause, executionId: claim.id },
            'cannot give an execution back: others take it over when its lease ends',
          ),
        );
    }
  }

  #isLeaseOver(): boolean {
    return performance.now() - this.#lastRenewal > GIVE_UP_MS;
  }

  #watchLease(): void {
    if (this.#running.size === 0 || !this.#isLeaseOver()) return;
    for (const { abort } of this.#running.values()) abort.abort('lost' satisfies ExecutionStop);
  }

  /** Renews the leases, and learns what is to be ended and what is no longer ours. */
  async #renew(): Promise<void> {
    const began = performance.now();
    const asked = new Map(this.#running);
    if (asked.size > 0) {
      const held = await renewExecutions(this.#parts.platform.db, [...asked.keys()]);
      for (const [token, { abort }] of asked) {
        const cancel = held.get(token);
        // One that has ended in between is aborted for nothing.
        if (cancel === undefined) abort.abort('lost' satisfies ExecutionStop);
        else if (cancel) abort.abort(cancel satisfies ExecutionStop);
      }
    }
    this.#lastRenewal = began;
  }
}
