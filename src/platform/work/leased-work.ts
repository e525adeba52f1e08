import { leaseController } from '#kernel/lease-signal.ts';
import type { Renewal } from '#platform/work/kind.ts';
import { Lease, type StopReason } from '#platform/work/lease.ts';

interface Running<Reason extends string> {
  lease: Lease<Reason>;
  done: Promise<void>;
  /** Time of the last renewal, by the monotonic clock, which goes on while the process is stopped. */
  renewedAt: number;
}

/** Claims that a process carries on, by token, with their leases. */
export class LeasedWork<Reason extends string = never> {
  readonly #running = new Map<string, Running<Reason>>();
  /** Milliseconds without a renewal, two thirds of a lease, after which a process leaves its work to others. */
  readonly #giveUpMs: number;
  /** Time just before the last claim: the leases of its items count from then. */
  #claimedAt = performance.now();

  readonly #onRest: (() => void) | undefined;

  /** `leaseSeconds`: how long a claim holds without being renewed. `onRest` is called when an item begins to rest. */
  constructor(leaseSeconds: number, onRest?: () => void) {
    this.#giveUpMs = (leaseSeconds * 2000) / 3;
    this.#onRest = onRest;
  }

  get size(): number {
    return this.#running.size;
  }

  /** Number of items that take a slot. */
  get busy(): number {
    return [...this.#running.values()].filter(({ lease }) => !lease.isResting).length;
  }

  /** Notes the time before a claim is asked for: its lease counts from here. */
  refresh(): void {
    this.#claimedAt = performance.now();
  }

  /** Carries out a claim that was made since `refresh`; resolves with its end. */
  begin(token: string, carryOut: (lease: Lease<Reason>) => Promise<void>): Promise<void> {
    const time = { renewedAt: this.#claimedAt };
    const lease = new Lease<Reason>(
      token,
      leaseController(() => this.#isOver(time)),
      this.#onRest,
    );
    const done = carryOut(lease).finally(() => this.#running.delete(token));
    this.#running.set(token, Object.assign(time, { lease, done }));
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
      // A claim that is not held any more has ended, was taken away or was taken over.
      if (!renewal) running.lease.abort('lost');
      else if (renewal.reason !== null) running.lease.abort(renewal.reason);
    }
  }

  /** Aborts what may have lost its lease. Returns whether that was everything: the process itself is cut off then. */
  watch(): boolean {
    const running = [...this.#running.values()];
    const over = running.filter((one) => this.#isOver(one));
    for (const { lease } of over) lease.abort('lost');
    return over.length > 0 && over.length === running.length;
  }

  abortAll(reason: StopReason<Reason>): void {
    for (const { lease } of this.#running.values()) lease.abort(reason);
  }

  /** Resolves when everything that runs now has ended. */
  async ended(): Promise<void> {
    await Promise.all([...this.#running.values()].map(({ done }) => done));
  }

  #isOver({ renewedAt }: Pick<Running<Reason>, 'renewedAt'>): boolean {
    return performance.now() - renewedAt > this.#giveUpMs;
  }
}
