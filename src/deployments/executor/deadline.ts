import { leaseController } from '#deployments/executor/lease-signal.ts';

/** Ends a piece of work after a time, which `touch` begins anew (engine.md, *The queue*: nothing stays in progress for ever). */
export class Deadline {
  readonly #outer: AbortSignal;
  readonly #milliseconds: number;
  readonly #controller: AbortController;
  readonly #follow = () => this.#controller.abort(this.#outer.reason);
  #timer: NodeJS.Timeout;
  /** Whether the time is over. */
  isOver = false;

  constructor(outer: AbortSignal, seconds: number) {
    this.#outer = outer;
    this.#milliseconds = seconds * 1000;
    // Looks at the outer signal whenever somebody looks at ours, which AbortSignal.any would not.
    this.#controller = leaseController(() => outer.aborted);
    if (outer.aborted) this.#follow();
    else outer.addEventListener('abort', this.#follow);
    this.#timer = this.#start();
  }

  /** Aborted with the outer signal, or when the time is over. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  touch(): void {
    clearTimeout(this.#timer);
    this.#timer = this.#start();
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#outer.removeEventListener('abort', this.#follow);
  }

  #start(): NodeJS.Timeout {
    return setTimeout(() => {
      this.isOver = true;
      this.#controller.abort();
    }, this.#milliseconds);
  }
}
