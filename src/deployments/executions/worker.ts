import {
  claimExecutions,
  giveBackExecution,
  LEASE_SECONDS,
  renewExecutions,
  type ClaimedExecution,
} from '#deployments/executions/claims.ts';
import { runExecution, type ExecutionParts, type ExecutionReason } from '#deployments/executions/run.ts';
import { cancelStopped, fireDue, followReleases } from '#deployments/executions/schedule.ts';
import { sweepExecutions } from '#deployments/executions/sweep.ts';
import { Poll } from '#platform/work/pace.ts';
import type { Lease } from '#platform/work/index.ts';
import { LeasedWork } from '#platform/work/leased-work.ts';

const LOOK_MS = 1_000;
const RENEW_MS = 3_000;
const WATCH_MS = 250;
/** Looks between two sweeps of what executions left. */
const SWEEP_EVERY = 10;

/**
 * Runs services by their schedules, beside deployments. Everything is in the database, so that several workers run each due time once, and what
 * a worker that is gone had begun is taken over: it is followed on, and never begun again.
 */
export class ExecutionWorker {
  readonly #parts: ExecutionParts;
  readonly #slots: number;
  readonly #work = new LeasedWork<ExecutionReason>(LEASE_SECONDS);
  #timers: NodeJS.Timeout[] = [];
  readonly #poll: Poll;
  #renewing: Promise<void> | undefined;
  #sweeping: Promise<void> | undefined;
  #looking: Promise<void> | undefined;
  readonly #ending = new AbortController();
  #stopping = false;
  #looks = 0;

  constructor(parts: ExecutionParts, slots: number) {
    this.#parts = parts;
    this.#slots = slots;
    this.#poll = new Poll(parts.platform.db, LOOK_MS, () => void this.look());
  }

  start(): void {
    this.#timers = [setInterval(() => void this.#renew(), RENEW_MS), setInterval(() => this.#work.watch(), WATCH_MS)];
    this.#poll.start();
    void this.look();
  }

  /** Leaves what runs to the next worker: it goes on meanwhile. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#ending.abort();
    this.#poll.stop();
    await this.#looking;
    this.#work.abortAll('give-back');
    await this.#work.ended();
    // What runs is the worker's until it has ended.
    for (const timer of this.#timers) clearInterval(timer);
    await this.#renewing;
    await this.#sweeping;
  }

  /** Renews the leases. Apart from the look, whose calls of runtimes take as long as they take. */
  #renew(): Promise<void> {
    return (this.#renewing ??= this.#work
      .renew((tokens) => renewExecutions(this.#parts.platform.db, tokens))
      .catch((error: unknown) => this.#parts.platform.log.warn({ err: error }, 'cannot renew the leases of executions'))
      .finally(() => (this.#renewing = undefined)));
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
    await this.#renew();
    if (this.#stopping) return;
    await followReleases(db, kinds);
    while (await fireDue(db));
    await cancelStopped(db);
    await this.#fill();
    if (this.#looks++ % SWEEP_EVERY === 0) void this.sweep();
  }

  /** Removes what ended executions left in the runtimes of this machine. */
  sweep(): Promise<void> {
    return (this.#sweeping ??= sweepExecutions(this.#parts, this.#ending.signal)
      .catch((error: unknown) => this.#parts.platform.log.warn({ err: error }, 'cannot sweep after executions'))
      .finally(() => (this.#sweeping = undefined)));
  }

  async #fill(): Promise<void> {
    const free = this.#slots - this.#work.size;
    if (free <= 0 || this.#stopping) return;
    this.#work.refresh();
    const { platform, nodeId, kinds } = this.#parts;
    const perOrganization = platform.settings.organizationSlots;
    for (const claim of await claimExecutions(platform.db, {
      nodeId,
      kinds: Object.keys(kinds),
      perOrganization,
      limit: free,
    }))
      void this.#work.begin(claim.token, (lease) => this.#carryOut(claim, lease));
  }

  async #carryOut(claim: ClaimedExecution, lease: Lease<ExecutionReason>): Promise<void> {
    const { db, log } = this.#parts.platform;
    try {
      await runExecution(this.#parts, claim, lease);
    } catch (error) {
      const inOrder = lease.reason === 'give-back';
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
}
