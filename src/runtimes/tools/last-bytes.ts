/** Keeps the last bytes of what comes. */
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

/** Bytes of standard error that an execution tells. */
export const TOLD_BYTES = 4096;
