import { Server } from 'node:net';
import type { Server as HttpServer } from 'node:http';
import type { Socket } from 'node:net';
import type { GrpcServer } from '#runtimes/proxy/builtin/grpc-server.ts';
import { createHttpServer } from '#runtimes/proxy/builtin/http-server.ts';
import type { RouteTable } from '#runtimes/proxy/builtin/route-table.ts';
import { Visits } from '#runtimes/proxy/builtin/visits.ts';
import type { Visit } from '#runtimes/proxy/builtin/visits.ts';
import type { ProxyLimits } from '#runtimes/proxy/limits.ts';

/** First bytes of clients that speak HTTP/2 without negotiation (RFC 9113 §3.4), such as gRPC; no method of HTTP/1 begins so. */
const HTTP2_BEGINNING = Buffer.from('PRI');

export interface ProxyServer {
  /** Server that does not listen yet. */
  server: HttpServer;
  /**
   * Accepts no new connections, and tells clients with their next answer to reconnect elsewhere: a connection closed while its client sends
   * would lose that request. The server's event `close` follows when all have gone.
   */
  retire(): void;
  /** Accepts nothing new and closes idle connections; the server's event `close` follows when the rest has ended. */
  end(): void;
}

/** Creates the server for visitors' requests, on one port for HTTP/1.1 and HTTP/2. */
export function createProxyServer(table: RouteTable, limits: ProxyLimits, trusted: readonly string[]): ProxyServer {
  const visits = new Visits(limits, trusted);
  let retired = false;
  const server = createHttpServer({ table, limits, visits, isRetired: () => retired });
  const [http1] = server.listeners('connection') as [(socket: Socket) => void];
  let grpc: Promise<GrpcServer> | undefined;
  const toHttp2 = (visit: Visit) => {
    const { socket } = visit;
    // Loaded on demand: most proxies never get a gRPC call, and HTTP/2 needs memory.
    grpc ??= import('#runtimes/proxy/builtin/grpc-server.ts').then(({ createGrpcServer }) =>
      createGrpcServer(table, limits),
    );
    return void grpc.then((found) => {
      if (socket.destroyed) return;
      found.take(visit);
      if (retired) found.retire();
    });
  };
  server.once('close', () => {
    visits.stop();
    void grpc?.then((found) => found.stop());
  });
  server.removeListener('connection', http1);
  server.on('connection', (socket: Socket) => {
    const visit = visits.enter(socket);
    if (!visit) return;
    socket.on('error', () => socket.destroy());
    onBeginning(socket, (isHttp2) => {
      if (isHttp2) return toHttp2(visit);
      http1.call(server, socket);
      socket.resume();
    });
  });
  const retire = () => {
    retired = true;
    // The method of the HTTP server is not used, as it closes idle connections as well.
    Server.prototype.close.call(server);
    void grpc?.then((found) => found.retire());
  };
  const end = () => {
    server.close();
    visits.closeIdle();
    void grpc?.then((found) => found.end());
  };
  return { server, retire, end };
}

/** Waits for enough bytes to recognize the protocol, and puts them back. */
function onBeginning(socket: Socket, then: (isHttp2: boolean) => void): void {
  let seen = Buffer.alloc(0);
  const onData = (bytes: Buffer) => {
    seen = Buffer.concat([seen, bytes]);
    const enough = Math.min(seen.length, HTTP2_BEGINNING.length);
    const isHttp2 = seen.subarray(0, enough).equals(HTTP2_BEGINNING.subarray(0, enough));
    if (isHttp2 && enough < HTTP2_BEGINNING.length) return;
    socket.removeListener('data', onData);
    socket.removeListener('end', onEnd);
    socket.pause();
    socket.unshift(seen);
    then(isHttp2);
  };
  const onEnd = () => socket.destroy();
  socket.on('data', onData);
  socket.on('end', onEnd);
}
