import { anySignal } from '#kernel/lease-signal.ts';
import type { Logger } from 'pino';
import { AppError } from '#kernel/errors.ts';
import type { Principal } from '#platform/access/principal.ts';

/**
 * Milliseconds between two checks of a caller's rights: a revoked token ends its streams and sockets within this time, on every replica.
 */
const CHECK_MS = 3_000;
const MAX_FAILURES = 5;
/** Milliseconds after which a check has failed: a silent database must not keep open what was revoked. */
const LOOK_MS = 10_000;

export interface WatchedParts {
  /** Aborted when the client or the server goes away. */
  signal: AbortSignal;
  log: Logger;
  /** Returns the caller as they are now. Throws the error that would refuse a request now. */
  check(): Promise<Principal>;
  checkMs?: number;
  lookMs?: number;
}

/** Checks again and again whether the caller of something that goes on may still have it. */
export class AccessWatch {
  principal: Principal;
  /** Error that the stream or socket ends with; absent where the client or the server went away. */
  refusal: unknown;
  readonly signal: AbortSignal;
  readonly #parts: WatchedParts;
  readonly #end = new AbortController();
  #timer: NodeJS.Timeout;
  #failures = 0;

  constructor(principal: Principal, parts: WatchedParts) {
    this.principal = principal;
    this.#parts = parts;
    this.signal = anySignal([parts.signal, this.#end.signal]);
    this.#timer = this.#later();
  }

  end(reason: unknown): void {
    this.refusal ??= reason;
    this.stop();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#end.abort();
  }

  #later(): NodeJS.Timeout {
    return setTimeout(() => void this.#look(), this.#parts.checkMs ?? CHECK_MS);
  }

  async #look(): Promise<void> {
    try {
      this.principal = await inTime(this.#parts.check(), this.#parts.lookMs ?? LOOK_MS);
      this.#failures = 0;
    } catch (error) {
      // That it cannot be found out at the moment is no refusal; in the long run it is.
      const known = error instanceof AppError && error.code !== 'unavailable' && error.code !== 'internal';
      if (known || ++this.#failures === MAX_FAILURES) return this.end(error);
      this.#parts.log.warn({ err: error }, 'the caller of an open connection could not be checked');
    }
    if (!this.signal.aborted) this.#timer = this.#later();
  }
}

async function inTime<T>(work: Promise<T>, ms: number): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new AppError('unavailable', 'Your access could not be checked.')), ms);
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
