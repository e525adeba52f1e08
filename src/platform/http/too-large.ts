import { Readable } from 'node:stream';
import type { preParsingAsyncHookHandler } from 'fastify';
import { addressOfClient } from '#kernel/addresses.ts';
import type { Platform } from '#platform/context.ts';
import { bodyTooLarge } from '#platform/http/body-stream.ts';
import type { BodyCall, Route } from '#platform/http/route.ts';

/** Bytes of a body that are read at most. */
const LONGEST_READ = 32 << 20;

/**
 * Makes the hook that calls `beforeBody` of a route before it reads a body. A body above the limit goes to `onTooLarge`, and the call is refused
 * with 413 then.
 */
export function bodyHook(
  platform: Platform,
  { beforeBody, onTooLarge }: Pick<Route, 'beforeBody' | 'onTooLarge'>,
  limit: number,
): preParsingAsyncHookHandler {
  return async (request, reply, payload) => {
    const peer = addressOfClient(
      request.socket.remoteAddress,
      request.headers['x-forwarded-for'],
      platform.settings.trustedProxies,
    );
    const call: BodyCall = {
      ...platform,
      params: request.params as Record<string, string>,
      headers: request.headers,
      ...(peer === undefined ? {} : { peer }),
    };
    try {
      beforeBody?.(call);
    } catch (error) {
      // The body of a refused call is not waited for.
      reply.header('connection', 'close');
      throw error;
    }
    const length = Number(request.headers['content-length']);
    if (!onTooLarge || length <= limit) return payload;
    const parts = (payload as Readable)[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
    const begin: Buffer[] = [];
    if (Number.isNaN(length)) {
      // Only the body itself tells how long it is.
      for (let size = 0; size <= limit;) {
        const { value, done } = await parts.next();
        if (done) return Readable.from([Buffer.concat(begin)], { objectMode: false });
        begin.push(value);
        size += value.length;
      }
    }
    reply.header('connection', 'close');
    await onTooLarge({ ...call, body: readRest(begin, parts) });
    throw bodyTooLarge(limit);
  };
}

async function* readRest(begin: Buffer[], parts: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  let size = 0;
  for (const part of begin) {
    size += part.length;
    yield part;
  }
  for (;;) {
    const { value, done } = await parts.next();
    if (done) return;
    size += value.length;
    if (size > LONGEST_READ) throw bodyTooLarge(LONGEST_READ);
    yield value;
  }
}
