/** Look that is repeated by time and never runs beside itself. A slow one delays the next. */
export class Periodic {
  readonly #everyMs: number;
  readonly #look: () => Promise<void>;
  readonly #onError: (error: unknown) => void;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;

  constructor(everyMs: number, look: () => Promise<void>, onError: (error: unknown) => void) {
    this.#everyMs = everyMs;
    this.#look = look;
    this.#onError = onError;
  }

  /** Looks now and from now on. */
  start(): void {
    this.#timer = setInterval(() => void this.look(), this.#everyMs);
    void this.look();
  }

  /** Begins no look any more, and waits for the end of one that is under way. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#running;
  }

  /** Looks once; a look that is under way already is joined. */
  look(): Promise<void> {
    return (this.#running ??= this.#look()
      .catch(this.#onError)
      .finally(() => (this.#running = undefined)));
  }

  /** Waits for the end of a look that is under way. */
  async settled(): Promise<void> {
    await this.#running;
  }
}
