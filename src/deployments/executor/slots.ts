/** Places for work of which only so much runs at a time. Callers that wait are served in order. */
export class Slots {
  readonly #most: number;
  readonly #waiting: (() => void)[] = [];
  #taken = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** True if the next caller of `take` has to wait. */
  get isFull(): boolean {
    return this.#taken >= this.#most;
  }

  /** Waits for a place and returns the function that gives it back, once. Throws the signal's reason as soon as it is aborted. */
  async take(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.isFull) await this.#wait(signal);
    else this.#taken++;
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      const next = this.#waiting.shift();
      if (next) next();
      else this.#taken--;
    };
  }

  /** Resolves when the place of another is handed over. */
  #wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const go = () => {
        signal.removeEventListener('abort', leave);
        resolve();
      };
      const leave = () => {
        this.#waiting.splice(this.#waiting.indexOf(go), 1);
        reject(signal.reason as Error);
      };
      this.#waiting.push(go);
      signal.addEventListener('abort', leave, { once: true });
    });
  }
}
