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
  readonly #onRest: () => void;
  #isResting = false;

  /** `onRest` is called when the work begins to rest. */
  constructor(token: string, controller: AbortController, onRest: () => void = () => undefined) {
    this.token = token;
    this.#controller = controller;
    this.#onRest = onRest;
  }

  /** True while the work only waits for another system: it takes none of its process's slots then. */
  get isResting(): boolean {
    return this.#isResting;
  }

  /** Begins or ends a rest. Work that goes on takes its slot back at once, even if other work has taken it meanwhile. */
  rest(isResting: boolean): void {
    if (this.#isResting === isResting) return;
    this.#isResting = isResting;
    if (isResting) this.#onRest();
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
