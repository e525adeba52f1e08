import { Server } from 'node:net';
import type { Server as HttpServer } from 'node:http';
import type { Socket } from 'node:net';
import type { GrpcServer } from '#runtimes/proxy/builtin/grpc-server.ts';
import { createHttpServer } from '#runtimes/proxy/builtin/http-server.ts';
import type { RouteTable } from '#runtimes/proxy/builtin/route-table.ts';
import { Visits } from '#runtimes/proxy/builtin/visits.ts';
import type { Visit } from '#runtimes/proxy/builtin/visits.ts';
import type { ProxyLimits } from '#runtimes/proxy/limits.ts';

/** How clients begin that speak HTTP/2 without asking (RFC 9113 §3.4), as those of gRPC do; no method of HTTP/1 begins so. */
const HTTP2_BEGINNING = Buffer.from('PRI');

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

/** Server that visitors' requests come to, on one port for HTTP/1.1 and HTTP/2. */
export function createProxyServer(table: RouteTable, limits: ProxyLimits, trusted: readonly string[]): ProxyServer {
  const visits = new Visits(limits, trusted);
  let retired = false;
  const server = createHttpServer({ table, limits, visits, isRetired: () => retired });
  const [http1] = server.listeners('connection') as [(socket: Socket) => void];
  let grpc: Promise<GrpcServer> | undefined;
  const toHttp2 = (visit: Visit) => {
    const { socket } = visit;
    // Most proxies never see a call of gRPC, and HTTP/2 takes its memory.
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
    // Not the method of the HTTP server, which closes idle connections as well.
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

/** Waits for enough bytes to tell the protocol, and puts them back. */
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
