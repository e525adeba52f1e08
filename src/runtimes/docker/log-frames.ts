import { LONGEST_LINE } from '#runtimes/tools/log-limits.ts';
import { FrameReader } from './frames.ts';

/** Line of a container's output with the engine's time stamp (RFC 3339 with nanoseconds). */
export interface RawLine {
  stream: 'stdout' | 'stderr';
  stamp: string;
  text: string;
}

const NEWLINE = 10;
/** Bytes of a line that are kept: all of its characters, with the time stamp. */
const KEPT_BYTES = 4 * LONGEST_LINE;

/**
 * Reads lines from the frames of a log. With time stamps each line of the output begins with one; a line longer than 16 KiB comes as
 * several frames, each with its own stamp. What is longer than the longest line is cut.
 */
export class LogDemultiplexer {
  readonly #onLine: (line: RawLine) => void;
  readonly #frames = new FrameReader();
  readonly #partial: Record<RawLine['stream'], Buffer> = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };

  constructor(onLine: (line: RawLine) => void) {
    this.#onLine = onLine;
  }

  write(part: Buffer): void {
    for (const { stream, payload } of this.#frames.read(part)) this.#frame(stream, payload);
  }

  /** Emits the last line if it has no line end. */
  end(): void {
    for (const stream of ['stdout', 'stderr'] as const) {
      if (this.#partial[stream].length > 0) this.#line(stream, this.#partial[stream]);
      this.#partial[stream] = Buffer.alloc(0);
    }
  }

  #frame(stream: RawLine['stream'], payload: Buffer): void {
    const before = this.#partial[stream];
    // The next part of a long line repeats the time stamp: it is cut off.
    let rest = before.length === 0 ? payload : Buffer.concat([before, payload.subarray(payload.indexOf(' ') + 1)]);
    for (let end = rest.indexOf(NEWLINE); end >= 0; end = rest.indexOf(NEWLINE)) {
      this.#line(stream, rest.subarray(0, end));
      rest = rest.subarray(end + 1);
    }
    // What is left out is followed by its line end.
    this.#partial[stream] = rest.length > KEPT_BYTES ? rest.subarray(0, KEPT_BYTES) : rest;
  }

  #line(stream: RawLine['stream'], bytes: Buffer): void {
    const text = bytes.toString('utf8').replace(/\r$/, '');
    const space = text.indexOf(' ');
    this.#onLine({
      stream,
      stamp: normalStamp(text.slice(0, space)),
      text: text.slice(space + 1, space + 1 + LONGEST_LINE),
    });
  }
}

/** Time stamps of equal width, so that they compare as text (an engine may leave out trailing zeros). */
export const normalStamp = (stamp: string): string => {
  const [seconds, fraction = ''] = stamp.replace(/Z$/, '').split('.');
  return `${seconds}.${fraction.padEnd(9, '0')}`;
};
