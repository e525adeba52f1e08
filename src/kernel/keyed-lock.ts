/** Serialises work by key within this process: a piece starts when the one before has ended or failed. */
export class KeyedLock {
  readonly #tails = new Map<string, Promise<void>>();

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#tails.get(key) ?? Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    const tail = before.then(() => promise);
    this.#tails.set(key, tail);
    try {
      await before;
      return await work();
    } finally {
      resolve();
      if (this.#tails.get(key) === tail) this.#tails.delete(key);
    }
  }
}
