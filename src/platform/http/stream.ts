import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import type { Logger } from 'pino';
import type { Principal } from '#platform/access/principal.ts';
import { answerTo } from '#platform/http/errors.ts';
import { AccessWatch } from '#platform/http/access-watch.ts';

/** Milliseconds after which a client that takes nothing is cut off; it resumes from the last event that it has. */
const STALL_MS = 60_000;
/** Bytes that are written ahead of a slow client. */
const AHEAD_BYTES = 64 * 1024;

/**
 * An answer that goes on: a handler returns one after everything that can be refused was refused. It ends when the client goes away, the
 * server closes or the caller may no longer read it.
 */
export class EventStreamAnswer {
  /** Text of the stream until the signal; called once. `who` answers the caller as they are now. */
  readonly text: (signal: AbortSignal, who: () => Principal) => AsyncIterable<string>;
  /** Last text, told with the error that a request would be answered now. */
  readonly farewell: (status: number, message: string) => string;
  /** Called at the end, perhaps more than once. */
  readonly ended: () => void;
  readonly principal: Principal;

  constructor(parts: Pick<EventStreamAnswer, 'text' | 'farewell' | 'ended' | 'principal'>) {
    this.text = parts.text;
    this.farewell = parts.farewell;
    this.ended = parts.ended;
    this.principal = parts.principal;
  }
}

export interface StreamParts {
  requestId: string;
  /** Aborted when the client or the server goes away. */
  signal: AbortSignal;
  log: Logger;
  /** Returns the caller as they are now. Throws the error that would refuse a request now. */
  check(): Promise<Principal>;
}

/** Sends Server-Sent Events. No more is read than the client takes. */
export function sendStream(reply: FastifyReply, answer: EventStreamAnswer, parts: StreamParts): FastifyReply {
  const { signal } = parts;
  const stream = Readable.from(
    run(answer, parts, () => stream.destroy()),
    {
      objectMode: false,
      highWaterMark: AHEAD_BYTES,
    },
  );
  // A stream whose client is gone before its first text has no end that `run` would see.
  stream.once('close', answer.ended);
  if (signal.aborted) answer.ended();
  else signal.addEventListener('abort', answer.ended, { once: true });
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

async function* run(answer: EventStreamAnswer, parts: StreamParts, cut: () => void): AsyncGenerator<string> {
  const watch = new AccessWatch(answer.principal, parts);
  try {
    for await (const text of answer.text(watch.signal, () => watch.principal)) {
      const stalled = setTimeout(cut, STALL_MS);
      try {
        yield text;
      } finally {
        clearTimeout(stalled);
      }
      if (watch.signal.aborted) break;
    }
  } catch (error) {
    parts.log.error({ err: error }, 'a stream ends with an error');
    watch.end(error);
  } finally {
    watch.stop();
  }
  if (watch.refusal === undefined) return;
  const { status, body } = answerTo(watch.refusal, parts.requestId);
  yield answer.farewell(status, body.message);
}
