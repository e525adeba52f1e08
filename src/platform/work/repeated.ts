/** Work that never runs beside itself: a request while it runs has it run once more afterwards. */
export class Repeated {
  readonly #work: () => Promise<void>;
  readonly #onError: (error: unknown) => void;
  #running: Promise<void> | undefined;
  #again = false;

  constructor(work: () => Promise<void>, onError: (error: unknown) => void) {
    this.#work = work;
    this.#onError = onError;
  }

  /** Runs the work once more from now; resolves when no request is open. */
  request(): Promise<void> {
    if (this.#running) this.#again = true;
    else this.#running = this.#run().finally(() => (this.#running = undefined));
    return this.#running;
  }

  /** Resolves when no request is open. */
  async settled(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    do {
      this.#again = false;
      try {
        await this.#work();
      } catch (error) {
        this.#onError(error);
      }
    } while (this.#again);
  }
}
