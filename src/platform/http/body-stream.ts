import type { IncomingHttpHeaders } from 'node:http';
import { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { AppError, badRequest } from '#kernel/errors.ts';
import type { Route } from '#platform/http/route.ts';
import type { Settings } from '#platform/settings/index.ts';

/** Milliseconds for a whole request, and for one whose body is streamed. */
const REQUEST_MS = 60_000;
export const STREAMED_REQUEST_MS = 600_000;

const MIB = 2 ** 20;

/**
 * Returns the body of a request as a stream, unread. Throws 400 without a body, 413 for one that is announced larger than the
 * limit, and 415 for another type. The reader counts what comes: not every request announces its size.
 */
export function streamOf(route: Route, request: FastifyRequest, settings: Settings): Readable {
  const { types, mostBytes } = route.streamedBody!;
  const { 'content-type': type, 'content-length': length } = request.headers;
  if (!request.body) throw badRequest('A body is required.');
  if (type !== undefined && !types.includes(type.split(';')[0]!.trim().toLowerCase()))
    throw new AppError('unsupported_media_type', `Send the body as \`Content-Type: ${types[0]}\`.`);
  if (Number(length ?? 0) > mostBytes(settings)) throw bodyTooLarge(mostBytes(settings));
  return request.body as Readable;
}

/** 413 that names the limit. */
export const bodyTooLarge = (bytes: number): AppError =>
  new AppError('too_large', `The body is larger than ${bytes / MIB} MiB.`);

/** Makes the routes of a scope get their bodies as streams, unread and whatever their type. */
export function passStreams(scope: FastifyInstance): void {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', (_request, stream, done) => done(null, stream));
  closeUnread(scope);
}

/** Milliseconds for which the rest of a body is thrown away behind an answer that came before its end. */
const LINGER_MS = 5_000;

/**
 * Closes the connection of a request that is answered before its body was read. What still comes is thrown away for 5 seconds: a
 * connection that is closed at once is reset, and the client would not get the answer.
 */
function closeUnread(scope: FastifyInstance): void {
  scope.addHook('onSend', (request, reply, _payload, done) => {
    const { raw } = request;
    const { socket } = raw;
    // Requests that a test injects have no connection.
    if (!raw.complete && socket instanceof Socket) {
      reply.header('connection', 'close');
      // Called by the HTTP server after the answer: its own closes the connection in both directions.
      socket.destroySoon = () => {
        const timer = setTimeout(() => socket.destroy(), LINGER_MS);
        socket.once('close', () => clearTimeout(timer));
        raw.once('end', () => socket.destroy()).resume();
        socket.end();
      };
    }
    done();
  });
}

/** Tells whether a request announces no body. */
export const hasNoBody = (headers: IncomingHttpHeaders): boolean =>
  headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0;

/**
 * Hangs up on requests that are not whole after 60 seconds. Those with a streamed body end with the server's own limit: Node has one for
 * all requests.
 */
export function hangUpOnSlowRequests(app: FastifyInstance, limitMs = REQUEST_MS): void {
  app.addHook('onRequest', (request, reply, done) => {
    const { raw, routeOptions } = request;
    const { socket } = raw;
    done();
    // Requests that a test injects have no connection.
    if (!(socket instanceof Socket) || hasNoBody(raw.headers)) return;
    if ((routeOptions.config as { streams?: boolean }).streams) return;
    const hangUp = () => {
      if (raw.complete || socket.destroyed) return;
      // An answer that has begun, to this request or to one before it, would end in the text of another.
      if (reply.raw.headersSent || reply.raw.socket !== socket) socket.destroy();
      else socket.end('HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n', () => socket.destroy());
    };
    const timer = setTimeout(hangUp, limitMs);
    raw.once('close', () => clearTimeout(timer));
  });
}
