import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { AnswerReader } from '#runtimes/proxy/answer-reader.ts';
import type { ResponseHead } from '#runtimes/proxy/heads.ts';
import { MalformedAnswer } from '#runtimes/proxy/heads.ts';

/** Why there is no answer, or only a part of one. */
export type Failure =
  /** No connection came about, or not in time: nothing of the request was sent. */
  | 'refused'
  /** The answer took too long to begin. */
  | 'late'
  /** The connection ended before the answer was complete. */
  | 'lost'
  /** What came is not HTTP/1.1. */
  | 'malformed';

/** What is told of a request on a connection. */
export interface Attempt {
  /** The connection stands: the request can be sent. */
  onReady(connection: UpstreamConnection): void;
  onHead(head: ResponseHead): void;
  onBody(bytes: Buffer): void;
  /** Nothing more is there for now. */
  onPart(): void;
  onEnd(trailers: string): void;
  /** The upstream agrees to speak something else on the connection, which is the caller's from now on. */
  onUpgrade(head: ResponseHead, socket: Socket): void;
  /** What was written has gone out: more may be. */
  onDrain(): void;
  onFailure(failure: Failure, why: string): void;
}

/** One connection to an upstream, which takes one request at a time. */
export class UpstreamConnection {
  readonly #socket: Socket;
  readonly #reader: AnswerReader;
  readonly #onIdle: (connection: UpstreamConnection, head: ResponseHead) => void;
  readonly #onGone: (connection: UpstreamConnection) => void;
  #attempt: Attempt | undefined;
  #head: ResponseHead | undefined;
  #stands = false;
  /** Whether the whole request was sent. */
  #sent = false;
  /** When it fails if nothing happened, in `performance.now()`. */
  deadline = Infinity;
  /** Until when it is hardly closed by the upstream in the moment in which it is used again. */
  recentUntil = 0;

  constructor(
    place: { host: string; port: number },
    attempt: Attempt,
    onIdle: (connection: UpstreamConnection, head: ResponseHead) => void,
    onGone: (connection: UpstreamConnection) => void,
  ) {
    this.#attempt = attempt;
    this.#onIdle = onIdle;
    this.#onGone = onGone;
    this.#reader = new AnswerReader({ onHead: this.#onHead, onBody: this.#onBody, onEnd: this.#onEnd });
    const socket = connect({ ...place, noDelay: true });
    this.#socket = socket;
    socket.once('connect', () => {
      this.#stands = true;
      this.#attempt?.onReady(this);
    });
    socket.on('data', this.#onData);
    socket.on('drain', () => this.#attempt?.onDrain());
    socket.on('end', () => this.#onLost('it closed the connection'));
    socket.on('error', (error) => this.#onLost(error.message));
    socket.on('close', () => {
      this.#onLost('the connection was closed');
      this.#onGone(this);
    });
  }

  /** Whether it can take a request now. */
  get isUsable(): boolean {
    return this.#attempt === undefined && this.#socket.writable && !this.#socket.destroyed;
  }

  /** Takes another request on a kept connection. */
  use(attempt: Attempt): void {
    this.#attempt = attempt;
    this.#sent = false;
    attempt.onReady(this);
  }

  /** Sends the head of a request, and what of the body is text already. False: wait for `onDrain` before more. */
  sendHead(method: string, text: string): boolean {
    this.#reader.expect(method);
    return this.#socket.write(text, 'latin1');
  }

  write(bytes: Buffer): boolean {
    return this.#socket.write(bytes);
  }

  writeText(text: string): boolean {
    return this.#socket.write(text, 'latin1');
  }

  /** The whole request was sent; the answer has to begin before `deadline`. */
  finishRequest(deadline: number): void {
    this.#sent = true;
    if (this.#head === undefined) this.deadline = deadline;
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Ends the connection; its attempt hears nothing more. */
  destroy(): void {
    this.#attempt = undefined;
    this.#socket.destroy();
  }

  /** What was to happen until the deadline did not. */
  expire(): void {
    this.deadline = Infinity;
    this.#fail(this.#stands ? 'late' : 'refused', 'it took too long');
  }

  #fail(failure: Failure, why: string): void {
    const attempt = this.#attempt;
    this.destroy();
    attempt?.onFailure(failure, why);
  }

  #onLost(why: string): void {
    if (this.#attempt && this.#stands && this.#reader.close()) return;
    this.#fail(this.#stands ? 'lost' : 'refused', why);
  }

  readonly #onData = (bytes: Buffer): void => {
    try {
      const taken = this.#reader.push(bytes);
      if (this.#head?.status === 101) this.#upgrade(bytes.subarray(taken));
      else if (this.#head) this.#attempt?.onPart();
    } catch (error) {
      if (!(error instanceof MalformedAnswer)) throw error;
      this.#fail('malformed', error.message);
    }
  };

  #upgrade(rest: Buffer): void {
    const attempt = this.#attempt;
    const socket = this.#socket;
    this.#attempt = undefined;
    socket.removeListener('data', this.#onData);
    socket.removeAllListeners('end');
    socket.removeAllListeners('drain');
    if (rest.length > 0) socket.unshift(rest);
    attempt?.onUpgrade(this.#head!, socket);
  }

  readonly #onHead = (head: ResponseHead): void => {
    this.deadline = Infinity;
    this.#head = head;
    if (head.status !== 101) this.#attempt?.onHead(head);
  };

  readonly #onBody = (bytes: Buffer): void => this.#attempt?.onBody(bytes);

  readonly #onEnd = (trailers: string): void => {
    const attempt = this.#attempt;
    const head = this.#head!;
    this.#attempt = undefined;
    this.#head = undefined;
    // An answer that came before the whole request leaves a connection on which nobody knows what comes next.
    if (this.#sent && head.kept && !this.#socket.destroyed) this.#onIdle(this, head);
    else this.#socket.destroy();
    attempt?.onEnd(trailers);
  };
}
