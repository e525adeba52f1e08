/** Keeps the last bytes of a stream. */
export class LastBytes {
  readonly #limit: number;
  #bytes: Buffer = Buffer.alloc(0);

  constructor(limit: number) {
    this.#limit = limit;
  }

  push(part: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, part]).subarray(-this.#limit);
  }

  text(): string {
    return this.#bytes.toString().trim();
  }
}

/** Number of bytes of standard error that the end of an `exec` returns. */
export const TOLD_BYTES = 4096;
