/** Bell that ends the present wait, or the next one. */
export class Wake {
  #isRung = false;
  #ring: (() => void) | undefined;

  ring(): void {
    this.#isRung = true;
    this.#ring?.();
  }

  /** Returns once it rings, has rung since the last call, or after the time. Throws the signal's reason. */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const abort = () => reject(signal.reason as Error);
    const timer = setTimeout(resolve, ms);
    this.#ring = resolve;
    signal.addEventListener('abort', abort);
    if (this.#isRung) resolve();
    try {
      await promise;
      this.#isRung = false;
    } finally {
      this.#ring = undefined;
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
    }
  }
}
