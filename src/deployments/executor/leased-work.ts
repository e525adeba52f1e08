import { leaseController } from '#kernel/lease-signal.ts';

interface Running {
  abort: AbortController;
  done: Promise<void>;
  /** When its lease was last renewed, by the clock that no one sets, and that goes on while the process is stopped. */
  renewedAt: number;
}

/** A claim that is still the worker's, as its renewal found it. */
export interface Renewal<Reason> {
  token: string;
  /** Why the work is to be ended; null where it goes on. */
  reason: Reason | null;
  /** Whether the lease is longer now: false where somebody else has the row locked. */
  renewed: boolean;
}

/**
 * What a worker has claimed and carries on, by the tokens of its claims. Each has a signal, which is aborted for a reason, among them `lost`:
 * somebody else may have the claim by now (engine.md, *The queue*).
 */
export class LeasedWork<Reason extends string> {
  readonly #running = new Map<string, Running>();
  /** A worker that could not renew for two thirds of a lease leaves its work to others, before the lease ends. */
  readonly #giveUpMs: number;
  /** Before the last claim: what it answers has its lease from then on. */
  #claimedAt = performance.now();

  /** `leaseSeconds`: how long a claim holds without being renewed. */
  constructor(leaseSeconds = 15) {
    this.#giveUpMs = (leaseSeconds * 2000) / 3;
  }

  get size(): number {
    return this.#running.size;
  }

  /** To be called before something is claimed: its lease counts from here. */
  refresh(): void {
    this.#claimedAt = performance.now();
  }

  /** Carries out what was claimed just now; resolves with its end. */
  begin(token: string, carryOut: (abort: AbortController) => Promise<void>): Promise<void> {
    const lease = { renewedAt: this.#claimedAt };
    const abort = leaseController(() => this.#isOver(lease));
    const done = carryOut(abort).finally(() => this.#running.delete(token));
    this.#running.set(token, Object.assign(lease, { abort, done }));
    return done;
  }

  /** Renews the leases; `ask` returns the claims that are still held. */
  async renew(ask: (tokens: string[]) => Promise<Renewal<Reason>[]>): Promise<void> {
    const began = performance.now();
    const asked = new Map(this.#running);
    if (asked.size === 0) return;
    const held = new Map((await ask([...asked.keys()])).map((renewal) => [renewal.token, renewal]));
    for (const [token, running] of asked) {
      const renewal = held.get(token);
      if (renewal?.renewed) running.renewedAt = began;
      // A claim that is gone has ended, was cancelled by force or was taken over.
      if (!renewal) running.abort.abort('lost');
      else if (renewal.reason !== null) running.abort.abort(renewal.reason);
    }
  }

  /** Leaves to others what may have lost its lease, and tells whether that was everything, so that the worker itself is cut off. */
  watch(): boolean {
    const running = [...this.#running.values()];
    const over = running.filter((one) => this.#isOver(one));
    for (const { abort } of over) abort.abort('lost');
    return over.length > 0 && over.length === running.length;
  }

  abortAll(reason: Reason | 'lost'): void {
    for (const { abort } of this.#running.values()) abort.abort(reason);
  }

  /** Ends everything for the reason and waits until it has ended. */
  async end(reason: Reason): Promise<void> {
    this.abortAll(reason);
    await Promise.all([...this.#running.values()].map(({ done }) => done));
  }

  #isOver({ renewedAt }: Pick<Running, 'renewedAt'>): boolean {
    return performance.now() - renewedAt > this.#giveUpMs;
  }
}
