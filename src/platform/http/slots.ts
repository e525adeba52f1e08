import { AppError } from '#kernel/errors.ts';

const RETRY_SECONDS = 10;

/** Counts connections of one kind that are open in this process, and refuses more than the settings allow. */
export class Slots {
  readonly #names: { plural: string; advice: string };
  readonly #byCaller = new Map<string, number>();
  #open = 0;

  /** `plural` and `advice` stand in the refusal: `event streams`, `close one`. */
  constructor(names: { plural: string; advice: string }) {
    this.#names = names;
  }

  get open(): number {
    return this.#open;
  }

  /** Takes a slot and returns the function that gives it back. Throws 429 if the caller has too many, 503 if the process has. */
  take(caller: string, limits: { perCaller: number; perProcess: number }): () => void {
    const { plural, advice } = this.#names;
    const own = this.#byCaller.get(caller) ?? 0;
    const headers = { 'Retry-After': String(RETRY_SECONDS) };
    if (own >= limits.perCaller)
      throw new AppError('rate_limited', `This token has ${own} ${plural} open, which is the limit: ${advice}.`, {
        headers,
      });
    if (this.#open >= limits.perProcess)
      throw new AppError('unavailable', `This server has ${this.#open} ${plural} open, which is its limit.`, {
        headers,
      });
    this.#open++;
    this.#byCaller.set(caller, own + 1);
    let given = false;
    return () => {
      if (given) return;
      given = true;
      this.#open--;
      const left = this.#byCaller.get(caller)! - 1;
      if (left === 0) this.#byCaller.delete(caller);
      else this.#byCaller.set(caller, left);
    };
  }
}
