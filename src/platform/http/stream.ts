import { anySignal } from '#kernel/lease-signal.ts';
import { AppError } from '#kernel/errors.ts';
import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import type { Logger } from 'pino';
import type { Principal } from '#platform/access/principal.ts';
import { answerTo } from '#platform/http/errors.ts';
import { endBlock } from '#platform/http/server-sent-events.ts';
import { AccessWatch } from '#platform/http/access-watch.ts';

/** Milliseconds after which a client that takes nothing is cut off; it resumes from the last event that it has. */
const STALL_MS = 60_000;
/** Milliseconds that a client has to take the last event once the server closes. */
const CLOSE_MS = 5_000;
/** Bytes that are written ahead of a slow client. */
const AHEAD_BYTES = 64 * 1024;

/**
 * An answer that goes on: a handler returns one after everything that can be refused was refused. It ends when the client goes away, the
 * server closes or the caller may no longer read it.
 */
export class EventStreamAnswer {
  /** Text of the stream until the signal; called once. `who` answers the caller as they are now. */
  readonly text: (signal: AbortSignal, who: () => Principal) => AsyncIterable<string>;
  /** Called at the end, perhaps more than once. */
  readonly ended: () => void;
  readonly principal: Principal;

  constructor(parts: Pick<EventStreamAnswer, 'text' | 'ended' | 'principal'>) {
    this.text = parts.text;
    this.ended = parts.ended;
    this.principal = parts.principal;
  }
}

export interface StreamParts {
  requestId: string;
  /** Aborted when the client goes away. */
  gone: AbortSignal;
  /** Aborted when the server closes. */
  closing: AbortSignal;
  log: Logger;
  /** Returns the caller as they are now. Throws the error that would refuse a request now. */
  check(): Promise<Principal>;
}

/** Sends Server-Sent Events. No more is read than the client takes. */
export function sendStream(reply: FastifyReply, answer: EventStreamAnswer, parts: StreamParts): FastifyReply {
  const signal = anySignal([parts.gone, parts.closing]);
  const text = cutStalled(run(answer, parts, signal), () => stream.destroy());
  const stream = Readable.from(text, { objectMode: false, highWaterMark: AHEAD_BYTES });
  // A stream whose client is gone before its first text has no end that `run` would see.
  stream.once('close', answer.ended);
  if (signal.aborted) answer.ended();
  else signal.addEventListener('abort', answer.ended, { once: true });
  cutOnClose(stream, parts.closing);
  return reply
    .headers({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      // A server that closes waits for connections that are kept.
      connection: 'close',
      // Proxies of the kind of nginx would keep events back until they have a page of them.
      'x-accel-buffering': 'no',
    })
    .send(stream);
}

/** Yields the parts of a stream, its last event included. Calls `cut` where the client takes nothing for a minute. */
export async function* cutStalled<Part>(parts: AsyncIterable<Part>, cut: () => void): AsyncGenerator<Part> {
  for await (const part of parts) {
    const stalled = setTimeout(cut, STALL_MS);
    try {
      yield part;
    } finally {
      clearTimeout(stalled);
    }
  }
}

/** Cuts a stream off whose client does not take its end while the server closes: a slow reader must not hold up the shutdown. */
export function cutOnClose(stream: Readable, closing: AbortSignal): void {
  const cut = () => void setTimeout(() => stream.destroy(), CLOSE_MS).unref();
  if (closing.aborted) cut();
  else closing.addEventListener('abort', cut, { once: true });
  stream.once('close', () => closing.removeEventListener('abort', cut));
}

/** Returns the error that ends streams when the server closes. */
export const closingError = (): Error =>
  new AppError('unavailable', 'The server is closing: connect again, with the last id as Last-Event-ID.');

async function* run(answer: EventStreamAnswer, parts: StreamParts, signal: AbortSignal): AsyncGenerator<string> {
  const watch = new AccessWatch(answer.principal, { ...parts, signal });
  try {
    for await (const text of answer.text(watch.signal, () => watch.principal)) {
      yield text;
      if (watch.signal.aborted) break;
    }
  } catch (error) {
    // Another system has failed, such as a cluster whose log is followed: no fault of the program.
    if (error instanceof AppError) parts.log.warn({ problem: error.message }, 'a stream ends with an error');
    else parts.log.error({ err: error }, 'a stream ends with an error');
    watch.end(error);
  } finally {
    watch.stop();
  }
  const reason = watch.refusal ?? (parts.closing.aborted ? closingError() : undefined);
  if (reason === undefined) return;
  const { status, body } = answerTo(reason, parts.requestId);
  yield endBlock(status, body.message);
}
