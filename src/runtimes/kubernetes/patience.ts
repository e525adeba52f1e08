import { setTimeout as sleep } from 'node:timers/promises';
import { asRuntimeError } from './errors.ts';

/** Milliseconds that the API server may be away while the cluster works by itself. */
const AWAY_MS = 5 * 60_000;

/** Patience with an API server that is away: what the cluster does goes on meanwhile and is only not seen. */
export class Patience {
  readonly #tell: (line: string) => void;
  #awaySince: number | null = null;

  /** `tell` gets the reason while the API server is away. */
  constructor(tell: (line: string) => void) {
    this.#tell = tell;
  }

  /** Returns the answer of a call; undefined while the API server is away. Throws RuntimeError, also when it is away for too long. */
  async ask<T>(call: () => Promise<T>): Promise<T | undefined> {
    try {
      const answer = await call();
      this.#awaySince = null;
      return answer;
    } catch (error) {
      const failure = asRuntimeError(error);
      if (failure.code !== 'unreachable') throw failure;
      this.#awaySince ??= Date.now();
      if (Date.now() - this.#awaySince > AWAY_MS) throw failure;
      this.#tell(failure.message);
      return undefined;
    }
  }
}

/** Milliseconds between two attempts. */
const AGAIN_MS = 500;

/** Repeats an idempotent call while the API server is away, for a number of milliseconds. Throws the last failure. */
export async function insist<T>(milliseconds: number, work: () => Promise<T>): Promise<T> {
  for (const end = Date.now() + milliseconds; ; await sleep(AGAIN_MS)) {
    try {
      return await work();
    } catch (error) {
      const failure = asRuntimeError(error);
      if (failure.code !== 'unreachable' || Date.now() > end) throw failure;
    }
  }
}
