import { constants, createServer } from 'node:http2';
import type { Http2Session } from 'node:http2';
import { contain } from '#runtimes/proxy/builtin/faults.ts';
import { forwardCall } from '#runtimes/proxy/builtin/grpc-call.ts';
import type { RouteTable } from '#runtimes/proxy/builtin/route-table.ts';
import type { Visit } from '#runtimes/proxy/builtin/visits.ts';
import type { ProxyLimits } from '#runtimes/proxy/limits.ts';

/** The highest number of a stream: none is refused yet. */
const LAST_STREAM = 2 ** 31 - 1;
/** How long a client may take to read that its connection ends. */
const GOAWAY_MS = 1_000;
/** Fields of a request that HTTP/2 adds to those of its head. */
const PSEUDO_FIELDS = 4;

/** Connections that speak HTTP/2. */
export interface GrpcServer {
  /** Ends its timers, once no connection is left. */
  stop(): void;
  /** Takes a connection, paused, with its first bytes put back. */
  take(visit: Visit): void;
  /** Tells the clients to come again elsewhere. */
  retire(): void;
  /** Takes no calls any more. */
  end(): void;
}

export function createGrpcServer(table: RouteTable, limits: ProxyLimits): GrpcServer {
  const server = createServer({
    maxHeaderListPairs: limits.headLines + PSEUDO_FIELDS,
    settings: { maxConcurrentStreams: limits.streams, maxHeaderListSize: limits.headBytes },
  });
  const sessions = new Map<Http2Session, Visit>();
  /** Those whose visitors said goodbye. */
  const leaving = new WeakSet<Http2Session>();
  let taking: Visit | undefined;
  let retired = false;
  const retire = (session: Http2Session) => {
    if (session.destroyed || session.closed) return;
    // First the news, then the end: calls that are on their way to us meanwhile are still answered (RFC 9113 §6.8).
    session.goaway(constants.NGHTTP2_NO_ERROR, LAST_STREAM);
    setTimeout(() => session.close(), GOAWAY_MS).unref();
  };
  server.on('session', (session) => {
    sessions.set(session, taking!);
    session.on('error', () => session.destroy());
    session.on('close', () => sessions.delete(session));
    session.on('goaway', () => leaving.add(session));
    if (retired) retire(session);
  });
  server.on('stream', (stream, headers, _flags, rawHeaders) => {
    // First of all: a stream whose session has just failed comes without a session, and its error follows.
    stream.on('error', () => stream.destroy());
    const visit = sessions.get(stream.session!);
    if (!visit) return stream.destroy();
    visit.begin();
    stream.once('close', () => visit.end());
    contain(
      () => void forwardCall(table, { stream, headers, rawHeaders, visit }),
      () => stream.destroy(),
    );
  });
  server.on('sessionError', () => undefined);
  const looking = endDeaf(sessions, leaving, limits.idleMs);
  return {
    stop: () => clearInterval(looking),
    take: (visit) => {
      const { socket } = visit;
      // The server that sockets come from leaves them half open. Who ends its side of HTTP/2 leaves: no call on it can be completed.
      socket.once('end', () => socket.destroy());
      taking = visit;
      server.emit('connection', socket);
      taking = undefined;
    },
    retire: () => {
      if (retired) return;
      retired = true;
      for (const session of sessions.keys()) retire(session);
    },
    end: () => {
      for (const session of sessions.keys()) session.close();
    },
  };
}

/**
 * Ends connections with calls of whose visitors nothing is heard from one look to the next, not even the answer to a ping: they are gone
 * without a word, or broke the protocol in a way after which Node.js reads nothing more of them and tells nobody, so that their calls
 * would never end.
 */
function endDeaf(
  sessions: ReadonlyMap<Http2Session, Visit>,
  leaving: WeakSet<Http2Session>,
  everyMs: number,
): NodeJS.Timeout {
  const heard = new WeakMap<Http2Session, number>();
  return setInterval(() => {
    for (const [session, { socket, underWay }] of sessions) {
      // Node.js asks nobody on a connection that is to end. One that we end may take as long as its calls do.
      if (underWay === 0 || (session.closed && !leaving.has(session))) continue;
      if (heard.get(session) === socket.bytesRead) socket.destroy();
      heard.set(session, socket.bytesRead);
      if (!session.closed && !session.destroyed) session.ping(() => undefined);
    }
  }, everyMs).unref();
}
