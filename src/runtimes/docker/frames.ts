/** Part of an output that the engine sends over one connection. */
export interface Frame {
  stream: 'stdout' | 'stderr';
  payload: Buffer;
}

const HEADER_BYTES = 8;
const STDERR = 2;

/**
 * Cuts the engine's multiplexed output into frames: 8 bytes of header (stream, three zeros, length), then the payload. The demultiplexer of
 * docker-modem writes on without waiting for its readers (docs/decisions/0053-small-code-that-stays.md).
 */
export class FrameReader {
  #pending: Buffer = Buffer.alloc(0);

  /** Yields the frames that end in the next part of the output. */
  *read(part: Buffer): Generator<Frame, void> {
    this.#pending = this.#pending.length === 0 ? part : Buffer.concat([this.#pending, part]);
    while (this.#pending.length >= HEADER_BYTES) {
      const end = HEADER_BYTES + this.#pending.readUInt32BE(4);
      if (this.#pending.length < end) return;
      const frame = this.#pending.subarray(0, end);
      this.#pending = this.#pending.subarray(end);
      yield { stream: frame[0] === STDERR ? 'stderr' : 'stdout', payload: frame.subarray(HEADER_BYTES) };
    }
  }
}
