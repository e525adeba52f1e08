import { leaseController } from '#deployments/executor/lease-signal.ts';

/** A worker that could not renew for this long leaves its work to others, 5 s before the lease ends. */
const GIVE_UP_MS = 10_000;

interface Running {
  abort: AbortController;
  done: Promise<void>;
}

/**
 * What a worker has claimed and carries on, by the tokens of its claims. Each has a signal, which is aborted for a reason, among them `lost`:
 * somebody else may have the claim by now (engine.md, *The queue*).
 */
export class LeasedWork<Reason extends string> {
  readonly #running = new Map<string, Running>();
  /** By the clock that no one sets, and that goes on while the process is stopped. */
  #lastRenewal = performance.now();

  get size(): number {
    return this.#running.size;
  }

  /** To be called before something is claimed: with nothing to renew the last renewal may be long ago. */
  refresh(): void {
    if (this.#running.size === 0) this.#lastRenewal = performance.now();
  }

  /** Everything that runs was given up: what is claimed from now on has its lease from now on. */
  restart(): void {
    this.#lastRenewal = performance.now();
  }

  /** Carries out what was claimed just now; resolves with its end. */
  begin(token: string, carryOut: (abort: AbortController) => Promise<void>): Promise<void> {
    const abort = leaseController(() => this.#isOver());
    const done = carryOut(abort).finally(() => this.#running.delete(token));
    this.#running.set(token, { abort, done });
    return done;
  }

  /** Renews the leases; `ask` answers the claims that are still held, each with why it is to be ended, null where it goes on. */
  async renew(ask: (tokens: string[]) => Promise<Map<string, Reason | null>>): Promise<void> {
    const began = performance.now();
    const asked = new Map(this.#running);
    const held = asked.size > 0 ? await ask([...asked.keys()]) : new Map<string, Reason | null>();
    this.#lastRenewal = began;
    for (const [token, { abort }] of asked) {
      const reason = held.get(token);
      // One that is not ours any more has ended, was cancelled by force or was taken over.
      if (reason === undefined) abort.abort('lost');
      else if (reason !== null) abort.abort(reason);
    }
  }

  /** Leaves everything to others where the leases may be over: whether that was so. */
  watch(): boolean {
    if (this.#running.size === 0 || !this.#isOver()) return false;
    this.abortAll('lost');
    return true;
  }

  abortAll(reason: Reason | 'lost'): void {
    for (const { abort } of this.#running.values()) abort.abort(reason);
  }

  /** Ends everything for the reason and waits until it has ended. */
  async end(reason: Reason): Promise<void> {
    this.abortAll(reason);
    await Promise.all([...this.#running.values()].map(({ done }) => done));
  }

  #isOver(): boolean {
    return performance.now() - this.#lastRenewal > GIVE_UP_MS;
  }
}
