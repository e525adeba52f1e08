import { AppError } from '#kernel/errors.ts';

const RETRY_SECONDS = 10;

/** Counts the streams that are open in this process, and refuses more than the settings allow. */
export class StreamSlots {
  readonly #byCaller = new Map<string, number>();
  #open = 0;

  /** Takes a slot and answers what gives it back. Throws 429 where the caller has too many, 503 where the process has. */
  take(caller: string, limits: { perCaller: number; perProcess: number }): () => void {
    const own = this.#byCaller.get(caller) ?? 0;
    const headers = { 'Retry-After': String(RETRY_SECONDS) };
    if (own >= limits.perCaller)
      throw new AppError(
        'rate_limited',
        `This token has ${own} event streams open, which is the limit: close one, or filter one stream by several types.`,
        { headers },
      );
    if (this.#open >= limits.perProcess)
      throw new AppError('unavailable', `This server has ${this.#open} event streams open, which is its limit.`, {
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
