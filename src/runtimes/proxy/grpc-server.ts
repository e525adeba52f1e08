import { constants, createServer } from 'node:http2';
import type { ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import { forwardCall } from '#runtimes/proxy/grpc-call.ts';
import type { RouteTable } from '#runtimes/proxy/route-table.ts';

/** The highest number of a stream: none is refused yet. */
const LAST_STREAM = 2 ** 31 - 1;
/** How long a client may take to read that its connection ends. */
const GOAWAY_MS = 1_000;

/** The connections that speak HTTP/2. */
export interface GrpcServer {
  /** Takes a connection, paused, with its first bytes put back. */
  take(socket: Socket): void;
  /** Tells the clients to come again elsewhere. */
  retire(): void;
  /** Takes no calls any more. */
  end(): void;
}

export function createGrpcServer(table: RouteTable): GrpcServer {
  const server = createServer();
  const sessions = new Set<ServerHttp2Session>();
  let retired = false;
  const retire = (session: ServerHttp2Session) => {
    // First the news, then the end: calls that are on their way to us meanwhile are still answered (RFC 9113 §6.8).
    session.goaway(constants.NGHTTP2_NO_ERROR, LAST_STREAM);
    setTimeout(() => session.close(), GOAWAY_MS).unref();
  };
  server.on('session', (session) => {
    sessions.add(session);
    session.on('close', () => sessions.delete(session));
    if (retired) retire(session);
  });
  server.on('stream', (stream, headers) => void forwardCall(table, stream, headers));
  server.on('sessionError', () => undefined);
  return {
    take: (socket) => void server.emit('connection', socket),
    retire: () => {
      retired = true;
      for (const session of sessions) retire(session);
    },
    end: () => {
      for (const session of sessions) session.close();
    },
  };
}
