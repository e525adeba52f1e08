import {
  claimExecutions,
  EXECUTIONS,
  LEASE_SECONDS,
  type ClaimedExecution,
  type ExecutionReason,
} from '#deployments/executions/claims.ts';
import { giveUp, MAX_PICKUPS, runExecution, type ExecutionParts } from '#deployments/executions/run.ts';
import { cancelStopped, fireDue, followReleases } from '#deployments/executions/schedule.ts';
import { sweepExecutions } from '#deployments/executions/sweep.ts';
import { WorkLoop, type WorkKind, type WorkReport } from '#platform/work/index.ts';
import { Repeated } from '#platform/work/repeated.ts';

/** Number of looks between two sweeps of what executions left. */
const SWEEP_EVERY = 10;

/** Figures of executions of schedules. */
export const EXECUTION_REPORT: WorkReport = { name: 'executions', status: EXECUTIONS.status };

/**
 * Worker that runs services by their schedules, beside deployments. Several workers run each due time once. An execution that a dead worker
 * began is adopted, and never begun again.
 */
export class ExecutionWorker {
  readonly #parts: ExecutionParts;
  readonly #loop: WorkLoop<ClaimedExecution, ExecutionReason>;
  readonly #ending = new AbortController();
  readonly #sweeps: Repeated;
  #looks = 0;

  constructor(parts: ExecutionParts, slots: number) {
    this.#parts = parts;
    this.#loop = new WorkLoop(this.#kind(slots), parts);
    this.#sweeps = new Repeated(
      () => sweepExecutions(parts, this.#ending.signal),
      (error) => parts.platform.log.warn({ err: error }, 'cannot sweep after executions'),
    );
  }

  start(): void {
    this.#loop.start();
  }

  /** Stops the worker; running executions go on meanwhile, and the next worker adopts them. */
  async stop(): Promise<void> {
    this.#ending.abort();
    await this.#loop.stop();
    await this.#sweeps.settled();
  }

  /** Looks once at what is due, runs or is left. */
  look(): Promise<void> {
    return this.#loop.look();
  }

  /** Looks for executions now. */
  nudge(): void {
    this.#loop.nudge();
  }

  /** Removes what ended executions left in the runtimes of this machine. */
  sweep(): Promise<void> {
    return this.#sweeps.request();
  }

  #kind(slots: number): WorkKind<ClaimedExecution, ExecutionReason> {
    const { platform, kinds } = this.#parts;
    const perOrganization = platform.settings.organizationSlots;
    return {
      name: EXECUTION_REPORT.name,
      leaseSeconds: LEASE_SECONDS,
      slots,
      pollMs: 1_000,
      prepare: () => this.#fire(),
      claim: (db, { nodeId, limit }) =>
        claimExecutions(db, { nodeId, kinds: Object.keys(kinds), perOrganization, limit }),
      renew: EXECUTIONS.renew,
      // After a failure the command may still run: the lease is left to end by itself.
      giveBack: async (db, claim, stoppedBy) => {
        if (stoppedBy === 'order') await EXECUTIONS.giveBack(db, claim, stoppedBy, LEASE_SECONDS);
      },
      run: (claim, lease) => runExecution(this.#parts, claim, lease),
      attempts: {
        most: MAX_PICKUPS,
        of: ({ pickups }) => pickups,
        giveUp: (claim, lease) => giveUp(this.#parts, claim, lease),
      },
      fields: ({ id }) => ({ executionId: id }),
    };
  }

  /** Makes executions of the times that are due, and ends those of services that were stopped. */
  async #fire(): Promise<void> {
    const { platform, kinds } = this.#parts;
    this.#loop.renew();
    await followReleases(platform.db, kinds);
    while (await fireDue(platform.db));
    await cancelStopped(platform.db);
    if (this.#looks++ % SWEEP_EVERY === 0) void this.sweep();
  }
}
