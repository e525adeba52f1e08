import { MalformedAnswer, readResponseHead, readTrailers } from '#runtimes/proxy/heads.ts';
import type { ResponseHead } from '#runtimes/proxy/heads.ts';

/** Longest head or block of trailers that an upstream may send. */
const LONGEST_HEAD = 64 << 10;
/** Longest line within a body: the size of a chunk, or a trailer. */
const LONGEST_LINE = 8 << 10;
const CHUNK_SIZE = /^([0-9a-fA-F]{1,8})[ \t]*(?:;[\t\x20-\x7e\x80-\xff]*)?$/;
const CRLF = '\r\n';
const END_OF_HEAD = '\r\n\r\n';

/** What is made of an answer, piece by piece. */
export interface AnswerSink {
  onHead(head: ResponseHead): void;
  onBody(bytes: Buffer): void;
  /** The answer is complete; header lines that came after the body. */
  onEnd(trailers: string): void;
}

type State = 'idle' | 'head' | 'length' | 'size' | 'chunk' | 'chunkEnd' | 'trailers' | 'close' | 'upgraded';

/** Reads the answers that come on one connection, one after the other. Every call may throw MalformedAnswer. */
export class AnswerReader {
  readonly #sink: AnswerSink;
  #state: State = 'idle';
  /** Beginning of a head or line whose end has not come. */
  #text = '';
  /** Bytes of the body or chunk that are still to come. */
  #left = 0;
  #trailers = '';
  #hasNoBody = false;

  constructor(sink: AnswerSink) {
    this.#sink = sink;
  }

  /** A request was sent, whose answer comes next. */
  expect(method: string): void {
    this.#state = 'head';
    this.#hasNoBody = method === 'HEAD';
  }

  /** Takes bytes. Answers how many belong to HTTP: fewer than all when the connection was upgraded. */
  push(bytes: Buffer): number {
    let at = 0;
    while (at < bytes.length && this.#state !== 'upgraded') {
      // What comes after an answer would pass for the answer to somebody else's request.
      if (this.#state === 'idle') throw new MalformedAnswer('more came than was asked for');
      at = this.#step(bytes, at);
    }
    if (this.#state === 'idle') this.#end();
    return at;
  }

  /** The upstream has ended the connection. Answers whether that was the end of the answer under way. */
  close(): boolean {
    if (this.#state !== 'close') return false;
    this.#state = 'idle';
    this.#end();
    return true;
  }

  #step(bytes: Buffer, at: number): number {
    switch (this.#state) {
      case 'head':
        return this.#takeText(bytes, at, END_OF_HEAD, LONGEST_HEAD, this.#onHead);
      case 'size':
        return this.#takeText(bytes, at, CRLF, LONGEST_LINE, this.#onSize);
      case 'chunkEnd':
        return this.#takeText(bytes, at, CRLF, 0, this.#onChunkEnd);
      case 'trailers':
        return this.#takeText(bytes, at, CRLF, LONGEST_LINE, this.#onTrailer);
      default:
        return this.#takeBody(bytes, at);
    }
  }

  #takeBody(bytes: Buffer, at: number): number {
    const end = this.#state === 'close' ? bytes.length : Math.min(bytes.length, at + this.#left);
    this.#left -= end - at;
    this.#sink.onBody(at === 0 && end === bytes.length ? bytes : bytes.subarray(at, end));
    if (this.#left <= 0 && this.#state !== 'close') this.#state = this.#state === 'length' ? 'idle' : 'chunkEnd';
    return end;
  }

  /** Gathers text until `mark`, at most `longest` bytes, hands it over with the mark, and answers where the rest begins. */
  #takeText(bytes: Buffer, at: number, mark: string, longest: number, done: (text: string) => void): number {
    const before = this.#text;
    if (before === '') {
      const found = bytes.indexOf(mark, at, 'latin1');
      if (found !== -1 && found - at <= longest) {
        done(bytes.toString('latin1', at, found + mark.length));
        return found + mark.length;
      }
    }
    const text = before + bytes.toString('latin1', at, at + longest + mark.length);
    const found = text.indexOf(mark);
    if (found === -1 && text.length < longest + mark.length) {
      this.#text = text;
      return bytes.length;
    }
    if (found === -1 || found > longest) throw new MalformedAnswer('its head or a line in it is too long');
    this.#text = '';
    done(text.slice(0, found + mark.length));
    return at + found + mark.length - before.length;
  }

  readonly #onHead = (text: string): void => {
    const head = readResponseHead(text);
    const { status, framing } = head;
    // Interim answers (100, 103) are not passed on; the real one follows.
    if (status < 200 && status !== 101) return;
    if (status === 101) this.#state = 'upgraded';
    else if (this.#hasNoBody || status === 204 || status === 304) this.#state = 'idle';
    else if (framing.by === 'length') this.#state = framing.length === 0 ? 'idle' : 'length';
    else this.#state = framing.by === 'chunks' ? 'size' : 'close';
    this.#left = framing.by === 'length' ? framing.length : 0;
    if (this.#state === 'close') head.kept = false;
    this.#sink.onHead(head);
  };

  readonly #onSize = (line: string): void => {
    const match = CHUNK_SIZE.exec(line.slice(0, -2));
    if (!match) throw new MalformedAnswer('the size of a chunk is not a number');
    this.#left = Number.parseInt(match[1]!, 16);
    this.#state = this.#left === 0 ? 'trailers' : 'chunk';
  };

  readonly #onChunkEnd = (): void => {
    this.#state = 'size';
  };

  readonly #onTrailer = (line: string): void => {
    if (line === CRLF) this.#state = 'idle';
    else this.#trailers += line;
    if (this.#trailers.length > LONGEST_HEAD) throw new MalformedAnswer('its trailers are too long');
  };

  #end(): void {
    const trailers = this.#trailers === '' ? '' : readTrailers(this.#trailers);
    this.#trailers = '';
    this.#sink.onEnd(trailers);
  }
}
