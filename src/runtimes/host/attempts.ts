import { join } from 'node:path';
import { makePrivate, readJson, writeAtomically } from '#kernel/private-files.ts';
import { attemptNumber, isReplaced, requireHeld } from '#runtimes/attempt.ts';
import type { Layout } from '#runtimes/host/layout.ts';
import { RuntimeError, type RuntimeContext } from '#runtimes/runtime.ts';

/** `<service>/attempt.json`: the newest attempt that changes the service's instances. */
interface Newest {
  format: 1;
  /** Generation of the deployment that asks. */
  asked: number;
  attempt: number;
}

/**
 * Detects whether a later attempt at a change of a service has begun. The later attempt may run in this process or in another one of this
 * machine.
 */
export class AttemptFence {
  readonly #layout: Layout;
  readonly #serviceId: string;
  readonly #asked: number;
  readonly #context: RuntimeContext;

  constructor(layout: Layout, serviceId: string, asked: number, context: RuntimeContext) {
    this.#layout = layout;
    this.#serviceId = serviceId;
    this.#asked = asked;
    this.#context = context;
  }

  /** Records that this attempt has begun. Throws RuntimeError `superseded` if a later one has. */
  begin(): void {
    this.require();
    if (!this.#context.attempt) return;
    const newest: Newest = { format: 1, asked: this.#asked, attempt: attemptNumber(this.#context) };
    makePrivate(this.#layout.service(this.#serviceId));
    writeAtomically(this.#file(), JSON.stringify(newest));
  }

  /** Throws RuntimeError if another attempt may act in place of this one. Call it before each change. */
  require(): void {
    requireHeld(this.#context);
    const newest = this.#newer();
    if (newest)
      throw new RuntimeError(
        'superseded',
        `Attempt ${newest.attempt} of generation ${newest.asked} has begun: attempt ${attemptNumber(this.#context)} of ${this.#asked} came too late.`,
      );
  }

  /** Returns whether another attempt may act in place of this one; a replaced attempt undoes nothing. */
  isReplaced(): boolean {
    return isReplaced(this.#context) || this.#newer() !== null;
  }

  #newer(): Newest | null {
    if (!this.#context.attempt) return null;
    const newest = readJson<Newest>(this.#file());
    if (newest === null || newest.asked < this.#asked) return null;
    const isNewer = newest.asked > this.#asked || newest.attempt > attemptNumber(this.#context);
    return isNewer ? newest : null;
  }

  #file(): string {
    return join(this.#layout.service(this.#serviceId), 'attempt.json');
  }
}
