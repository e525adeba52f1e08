/** Thrown when another worker has the claim, or the item is gone: the attempt ends without a trace. */
export class ClaimLost extends Error {
  constructor() {
    super('The claim on the work is lost: another worker carries it on, or it was deleted.');
    this.name = 'ClaimLost';
  }
}

/** Thrown by `Lease.hold` when the work is to end for the reason. */
export class WorkStopped extends Error {
  readonly reason: string;

  constructor(reason: string) {
    super(`The work was stopped: ${reason}.`);
    this.name = 'WorkStopped';
    this.reason = reason;
  }
}

/** Reason for which work is ended from outside: its kind's own ones, since its process stops, or since its lease is over. */
export type StopReason<Reason extends string = never> = Reason | 'give-back' | 'lost';

/**
 * Lease on claimed work. Its signal aborts when it is read after the lease ended, also in a process that was frozen meanwhile
 * (docs/decisions/0013-a-lease-is-looked-at.md): read it before each effect outside the database.
 */
export class Lease<Reason extends string = never> {
  readonly token: string;
  readonly #controller: AbortController;

  constructor(token: string, controller: AbortController) {
    this.token = token;
    this.#controller = controller;
  }

  /** Aborts with a `StopReason`. Combine it with others by `anySignal` only: `AbortSignal.any` does not notice the end of the lease. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Reason for which the work is to end; undefined while it goes on. */
  get reason(): StopReason<Reason> | undefined {
    return this.signal.aborted ? (this.signal.reason as StopReason<Reason>) : undefined;
  }

  /** Ends the work for a reason; the first one stays. */
  abort(reason: StopReason<Reason>): void {
    this.#controller.abort(reason);
  }

  /** Throws ClaimLost where the lease is over, and WorkStopped where the work is to end for another reason. */
  hold(): void {
    const { reason } = this;
    if (reason === 'lost') throw new ClaimLost();
    if (reason !== undefined) throw new WorkStopped(reason);
  }
}

/** Throws ClaimLost for a fenced write that changed no row. */
export function requireHeld(isHeld: boolean): void {
  if (!isHeld) throw new ClaimLost();
}
