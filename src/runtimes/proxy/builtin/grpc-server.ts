import { constants, createServer } from 'node:http2';
import type { Http2Session } from 'node:http2';
import { contain } from '#runtimes/proxy/builtin/faults.ts';
import { forwardCall } from '#runtimes/proxy/builtin/grpc-call.ts';
import type { RouteTable } from '#runtimes/proxy/builtin/route-table.ts';
import type { Visit } from '#runtimes/proxy/builtin/visits.ts';
import type { ProxyLimits } from '#runtimes/proxy/limits.ts';

/** Highest number of a stream: none is refused yet. */
const LAST_STREAM = 2 ** 31 - 1;
/** Milliseconds for a client to learn that its connection ends. */
const GOAWAY_MS = 1_000;
/** Number of fields that HTTP/2 adds to those of a request's head. */
const PSEUDO_FIELDS = 4;

/** Server for connections that speak HTTP/2. */
export interface GrpcServer {
  /** Stops its timers, once no connection is left. */
  stop(): void;
  /** Accepts a connection, paused, with its first bytes put back. */
  take(visit: Visit): void;
  /** Tells the clients to reconnect elsewhere. */
  retire(): void;
  /** Accepts no more calls. */
  end(): void;
}

export function createGrpcServer(table: RouteTable, limits: ProxyLimits): GrpcServer {
  const server = createServer({
    maxHeaderListPairs: limits.headLines + PSEUDO_FIELDS,
    settings: { maxConcurrentStreams: limits.streams, maxHeaderListSize: limits.headBytes },
  });
  const sessions = new Map<Http2Session, Visit>();
  /** Sessions whose visitors sent GOAWAY. */
  const leaving = new WeakSet<Http2Session>();
  let taking: Visit | undefined;
  let retired = false;
  const retire = (session: Http2Session) => {
    if (session.destroyed || session.closed) return;
    // GOAWAY comes first, the end later: calls already on their way are still answered (RFC 9113 §6.8).
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
    // This handler comes first: a stream whose session has just failed has no session, and its error follows.
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
      // The server of these sockets leaves them half open. With one side of HTTP/2 ended, no call can be completed: the socket is closed.
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
 * Ends connections with calls whose visitors have sent nothing since the last check, not even the answer to a ping. Such visitors are gone
 * silently, or broke the protocol in a way after which Node.js neither reads more nor reports an error, so that their calls would never
 * end.
 */
function endDeaf(
  sessions: ReadonlyMap<Http2Session, Visit>,
  leaving: WeakSet<Http2Session>,
  everyMs: number,
): NodeJS.Timeout {
  const heard = new WeakMap<Http2Session, number>();
  return setInterval(() => {
    for (const [session, { socket, underWay }] of sessions) {
      // Node.js sends no ping on a closing session. A session that the proxy closes may take as long as its calls.
      if (underWay === 0 || (session.closed && !leaving.has(session))) continue;
      if (heard.get(session) === socket.bytesRead) socket.destroy();
      heard.set(session, socket.bytesRead);
      if (!session.closed && !session.destroyed) session.ping(() => undefined);
    }
  }, everyMs).unref();
}
