import { createServer } from '#kernel/node-http.ts';
import type { Server as HttpServer } from 'node:http';
import { Server } from 'node:net';
import type { Socket } from 'node:net';
import type { GrpcServer } from '#runtimes/proxy/grpc-server.ts';
import { NodeClient } from '#runtimes/proxy/node-client.ts';
import { KEPT_SECONDS, PlainClient } from '#runtimes/proxy/plain-client.ts';
import type { RouteTable } from '#runtimes/proxy/route-table.ts';

/** How often connections are looked for that have said nothing for too long. */
const SWEEP_MS = 1_000;
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

/** The server that people's requests come to. */
export function createProxyServer(table: RouteTable): ProxyServer {
  const server = createServer(
    {
      // Upgrades to anything else (h2c of a careful client) are answered as if they had not been offered (RFC 9110 §7.8).
      shouldUpgradeCallback: (request) => request.headers.upgrade?.toLowerCase() === 'websocket',
      keepAliveTimeout: KEPT_SECONDS * 1000,
      maxHeaderSize: 32 << 10,
      // No limit for uploads; the head of a request still has to come within a minute.
      requestTimeout: 0,
      noDelay: true,
    },
    (request, response) => {
      if (retired) response.shouldKeepAlive = false;
      new NodeClient(table, request, response).forward();
    },
  );
  let retired = false;
  server.on('upgrade', (request, socket, head) => NodeClient.forUpgrade(table, request, socket, head).forward());
  const clients = letPlainIn(server, table, () => retired);
  const retire = () => {
    retired = true;
    // Not the method of the HTTP server, which closes idle connections as well.
    Server.prototype.close.call(server);
    clients.retire();
  };
  const end = () => {
    server.close();
    server.closeIdleConnections();
    clients.end();
  };
  return { server, retire, end };
}

/** Looks at what each connection says: plain requests are served here, all others by the server of their protocol. */
function letPlainIn(server: HttpServer, table: RouteTable, isRetired: () => boolean) {
  const [http1] = server.listeners('connection') as [(socket: Socket) => void];
  const clients = new Set<PlainClient>();
  let grpc: Promise<GrpcServer> | undefined;
  const handOver = (socket: Socket, bytes: Buffer) => {
    const isHttp2 = bytes.subarray(0, HTTP2_BEGINNING.length).equals(HTTP2_BEGINNING);
    if (isHttp2) {
      // Most proxies never see a call of gRPC, and HTTP/2 takes its memory.
      const fail = () => socket.destroy();
      socket.on('error', fail);
      socket.pause();
      socket.unshift(bytes);
      grpc ??= import('#runtimes/proxy/grpc-server.ts').then(({ createGrpcServer }) => createGrpcServer(table));
      return void grpc.then((found) => {
        socket.removeListener('error', fail);
        if (!socket.destroyed) found.take(socket);
      });
    }
    socket.unshift(bytes);
    http1.call(server, socket);
    socket.resume();
  };
  const options = { table, handOver, isRetired, onClosed: (client: PlainClient) => void clients.delete(client) };
  server.removeListener('connection', http1);
  server.on('connection', (socket: Socket) => clients.add(new PlainClient(socket, options)));
  const sweep = () => {
    const now = performance.now();
    for (const client of clients) if (client.deadline <= now) client.destroy();
  };
  setInterval(sweep, SWEEP_MS).unref();
  return {
    retire: () => void grpc?.then((found) => found.retire()),
    end: () => {
      for (const client of clients) if (client.isIdle) client.destroy();
      void grpc?.then((found) => found.end());
    },
  };
}
