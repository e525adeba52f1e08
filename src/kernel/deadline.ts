import { leaseController } from '#kernel/lease-signal.ts';

/** Seconds for outside work to return after it was told to end, on top of a workload's grace period. */
export const UNWIND_SECONDS = 10;

/** Error for work that was told to end and did not return: its caller has stopped waiting. */
export class Abandoned extends Error {
  constructor(seconds: number) {
    super(`It was told to end and did not within ${seconds} s.`);
    this.name = 'Abandoned';
  }
}

export interface DeadlineOptions {
  /** Seconds without `touch` after which the work is told to end; null for none. */
  seconds: number | null;
  /** Seconds that the work then has to come back, by the reason of the abort: undefined where the time was over. */
  patience(reason: unknown): number;
}

/**
 * Ends a piece of work after a time, which `touch` begins anew: nothing stays in progress for ever. The work is told by a signal. Work that does
 * not listen, such as a call of an engine that hangs, is abandoned after a while: its caller goes on without it, and it may change nothing more.
 */
export class Deadline {
  readonly #outer: AbortSignal;
  readonly #options: DeadlineOptions;
  readonly #controller: AbortController;
  readonly #follow = () => this.#controller.abort(this.#outer.reason);
  #timer: NodeJS.Timeout | undefined;
  #isAbandoned = false;
  /** True if the time is over. */
  isOver = false;

  constructor(outer: AbortSignal, options: DeadlineOptions) {
    this.#outer = outer;
    this.#options = options;
    // Reads the outer signal whenever this one is read, which AbortSignal.any would not.
    this.#controller = leaseController(() => outer.aborted);
    if (outer.aborted) this.#follow();
    else outer.addEventListener('abort', this.#follow);
    this.touch();
  }

  /** Signal that is aborted with the outer one, or when the time is over. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Returns whether the work may still change something: its caller waits for it, and no other worker can have taken over. */
  holds(): boolean {
    return !this.#isAbandoned && !(this.#outer.aborted && this.#outer.reason === 'lost');
  }

  touch(): void {
    clearTimeout(this.#timer);
    const { seconds } = this.#options;
    if (seconds !== null && !this.signal.aborted) this.#timer = setTimeout(() => this.#end(), seconds * 1000);
  }

  /** Waits for the work, and after the signal was aborted only for a while. Throws what the work throws, or Abandoned. */
  async race<T>(work: Promise<T>): Promise<T> {
    const { promise: given, reject } = Promise.withResolvers<never>();
    let timer: NodeJS.Timeout | undefined;
    const begin = () => {
      const seconds = this.#options.patience(this.signal.reason);
      timer = setTimeout(() => {
        this.#isAbandoned = true;
        reject(new Abandoned(seconds));
      }, seconds * 1000);
    };
    if (this.signal.aborted) begin();
    else this.signal.addEventListener('abort', begin, { once: true });
    // Nobody awaits abandoned work: its later error is swallowed here.
    work.catch(() => undefined);
    try {
      return await Promise.race([work, given]);
    } finally {
      clearTimeout(timer);
      this.signal.removeEventListener('abort', begin);
    }
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#outer.removeEventListener('abort', this.#follow);
  }

  #end(): void {
    this.isOver = true;
    this.#controller.abort();
  }
}

/** Runs work under a deadline. Throws the error of the work; after the deadline, the error that `late` makes. */
export async function withDeadline<T>(
  outer: AbortSignal,
  options: DeadlineOptions & { late(cause: unknown): Error },
  work: (deadline: Deadline) => Promise<T>,
): Promise<T> {
  const deadline = new Deadline(outer, options);
  try {
    return await deadline.race(work(deadline));
  } catch (error) {
    throw deadline.isOver && !outer.aborted ? options.late(error) : error;
  } finally {
    deadline.close();
  }
}

/** Waits for a piece of work for at most a time in milliseconds. Returns whether it ended; its error is thrown. It is not told to end. */
export async function endsWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<false>();
  const timer = setTimeout(() => resolve(false), ms);
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
