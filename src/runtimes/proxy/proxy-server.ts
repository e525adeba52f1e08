import { createServer } from 'node:http';
import type { Server as HttpServer } from 'node:http';
import { constants, createServer as createHttp2Server } from 'node:http2';
import type { ServerHttp2Session } from 'node:http2';
import { Server } from 'node:net';
import type { Socket } from 'node:net';
import { Exchange } from '#runtimes/proxy/exchange.ts';
import { forwardCall } from '#runtimes/proxy/grpc-call.ts';
import type { RouteTable } from '#runtimes/proxy/route-table.ts';

/** How long a connection may say nothing at first. */
const FIRST_BYTE_MS = 60_000;
/** How clients begin that speak HTTP/2 without asking (RFC 9113 §3.4), as those of gRPC do; no method of HTTP/1 begins so. */
const HTTP2_BEGINNING = Buffer.from('PRI');

/** The highest number of a stream: none is refused yet. */
const LAST_STREAM = 2 ** 31 - 1;
/** How long a client may take to read that its connection ends. */
const GOAWAY_MS = 1_000;

export interface ProxyServer {
  /** Does not listen yet. */
  server: HttpServer;
  /**
   * Takes no new connections, and tells those that there are with their next answer to come again elsewhere: one that is
   * closed while its client sends would lose that request. The server's event `close` tells when all have gone.
   */
  retire(): void;
  /** Takes nothing new and closes what is idle; the server's event `close` tells when what is under way has ended. */
  end(): void;
}

/** The server that people's requests come to. */
export function createProxyServer(table: RouteTable): ProxyServer {
  const server = createServer(
    {
      // Upgrades to anything else (h2c of a careful client) are answered as if they had not been offered (RFC 9110 §7.8).
      shouldUpgradeCallback: (request) => request.headers.upgrade?.toLowerCase() === 'websocket',
      keepAliveTimeout: 65_000,
      maxHeaderSize: 32 << 10,
      // No limit for uploads; the head of a request still has to come within a minute.
      requestTimeout: 0,
      noDelay: true,
    },
    (request, response) => {
      if (retired) response.shouldKeepAlive = false;
      new Exchange(table, request, response).forward();
    },
  );
  let retired = false;
  server.on('upgrade', (request, socket, head) => Exchange.forUpgrade(table, request, socket, head).forward());
  const sessions = letHttp2In(server, table);
  const retire = () => {
    retired = true;
    // Not the method of the HTTP server, which closes idle connections as well.
    Server.prototype.close.call(server);
    for (const session of sessions) {
      // First the news, then the end: calls that are on their way to us meanwhile are still answered (RFC 9113 §6.8).
      session.goaway(constants.NGHTTP2_NO_ERROR, LAST_STREAM);
      setTimeout(() => session.close(), GOAWAY_MS).unref();
    }
  };
  const end = () => {
    server.close();
    server.closeIdleConnections();
    for (const session of sessions) session.close();
  };
  return { server, retire, end };
}

/** Looks at the first bytes of each connection and hands it to the server of its protocol. Answers the HTTP/2 connections. */
function letHttp2In(server: HttpServer, table: RouteTable): Set<ServerHttp2Session> {
  const http2 = createHttp2Server();
  const sessions = new Set<ServerHttp2Session>();
  http2.on('session', (session) => {
    sessions.add(session);
    session.on('close', () => sessions.delete(session));
  });
  http2.on('stream', (stream, headers) => void forwardCall(table, stream, headers));
  http2.on('sessionError', () => undefined);
  const [http1] = server.listeners('connection') as [(socket: Socket) => void];
  server.removeListener('connection', http1);
  server.on('connection', (socket: Socket) => {
    const end = () => socket.destroy();
    socket.setTimeout(FIRST_BYTE_MS, end);
    socket.on('error', end);
    socket.once('data', (bytes: Buffer) => {
      socket.setTimeout(0);
      socket.removeListener('timeout', end);
      socket.removeListener('error', end);
      const isHttp2 = bytes.subarray(0, HTTP2_BEGINNING.length).equals(HTTP2_BEGINNING);
      // The HTTP/2 server takes what is waiting in the socket, which flowing would lose.
      if (isHttp2) socket.pause();
      socket.unshift(bytes);
      if (isHttp2) http2.emit('connection', socket);
      else http1.call(server, socket);
    });
  });
  return sessions;
}
