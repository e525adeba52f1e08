import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, RequestListener, Server } from 'node:http';
import { createServer as createHttp2Server } from 'node:http2';
import type { Http2Server, IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import { createServer as createTcpServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Upstream } from '#runtimes/router.ts';

/** HTTP server on a free port of loopback; disposed with all its connections. */
export interface TestUpstream extends Upstream, AsyncDisposable {
  server: Server;
  /** Number of connections that it accepted. */
  connections: number;
}

export async function startUpstream(listener: RequestListener, port = 0): Promise<TestUpstream> {
  const server = createServer(listener);
  await once(server.listen(port, '127.0.0.1'), 'listening');
  const upstream: TestUpstream = {
    server,
    address: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
    connections: 0,
    [Symbol.asyncDispose]: () => closeServer(server),
  };
  server.on('connection', () => upstream.connections++);
  return upstream;
}

async function closeServer(server: Server): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve));
  server.closeAllConnections();
  await closed;
}

/** Answers with its name and the received request, header names with their repetitions included. */
export const echo =
  (name: string): RequestListener =>
  (incoming, response) => {
    void text(incoming).then(
      (body) => {
        const { method, url, headers, rawHeaders } = incoming;
        response.writeHead(200, { 'content-type': 'application/json', 'x-upstream': name });
        response.end(JSON.stringify({ name, method, url, headers, rawHeaders, body }));
      },
      () => response.destroy(),
    );
  };

/** Returns an address that nothing listens on. */
export async function deadUpstream(): Promise<Upstream> {
  await using upstream = await startUpstream(() => undefined);
  return { address: upstream.address, port: upstream.port };
}

/** Bytes that one connection of a raw upstream received so far. */
interface RawConnection {
  socket: Socket;
  /** All bytes so far, as latin1. */
  received: string;
}

export interface RawUpstream extends Upstream, AsyncDisposable {
  connections: RawConnection[];
}

/** Starts an upstream without a parser: passes every packet to `respond`, with the number of packets so far. */
export async function rawUpstream(
  respond: (socket: Socket, packet: string, count: number) => void,
): Promise<RawUpstream> {
  let count = 0;
  const connections: RawConnection[] = [];
  const server = createTcpServer((socket) => {
    const connection = { socket, received: '' };
    connections.push(connection);
    socket.on('error', () => socket.destroy());
    socket.on('data', (bytes) => {
      const packet = bytes.toString('latin1');
      connection.received += packet;
      respond(socket, packet, ++count);
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    address: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
    connections,
    [Symbol.asyncDispose]: async () => {
      for (const { socket } of connections) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Answers websocket handshakes and sends each short text back in upper case. */
export function serveWebSockets(server: Server): void {
  server.on('upgrade', (incoming: IncomingMessage, socket: Socket) => {
    const key = incoming.headers['sec-websocket-key'];
    const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
    socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
        `Sec-WebSocket-Accept: ${accept}\r\n\r\n`,
    );
    socket.on('error', () => socket.destroy());
    socket.on('data', (frame: Buffer) => {
      const length = frame[1]! & 0x7f;
      const isText = (frame[0]! & 0x0f) === 1;
      if (!isText || length > 125) return socket.end();
      const mask = frame.subarray(2, 6);
      const payload = Buffer.from(frame.subarray(6, 6 + length).map((byte, at) => byte ^ mask[at % 4]!));
      const reply = Buffer.from(payload.toString().toUpperCase());
      socket.write(Buffer.concat([Buffer.from([0x81, reply.length]), reply]));
    });
  });
}

export interface GrpcUpstream extends Upstream, AsyncDisposable {
  server: Http2Server;
}

/** Starts an HTTP/2 server without TLS; `serve` answers each stream. */
export async function startHttp2Upstream(
  serve: (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void,
): Promise<GrpcUpstream> {
  const server = createHttp2Server();
  const sessions = new Set<{ destroy(): void }>();
  server.on('session', (session) => sessions.add(session));
  server.on('sessionError', () => undefined);
  server.on('stream', (stream, headers) => {
    stream.on('error', () => undefined);
    serve(stream, headers);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    server,
    address: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const session of sessions) session.destroy();
      await closed;
    },
  };
}

/**
 * Starts a gRPC server that echoes each message as it comes, with trailers at the end. `/refuse` answers with trailers only, `/die` ends
 * the connection.
 */
export const startGrpcUpstream = (name: string): Promise<GrpcUpstream> =>
  startHttp2Upstream((stream, headers) => {
    if (headers[':path'] === '/refuse')
      return stream.respond({ ':status': 200, 'grpc-status': '7' }, { endStream: true });
    if (headers[':path'] === '/die') return stream.session!.destroy();
    const seen = JSON.stringify({ te: headers.te, for: headers['x-forwarded-for'], host: headers[':authority'] });
    stream.respond(
      { ':status': 200, 'content-type': 'application/grpc', 'x-name': name, 'x-seen': seen },
      { waitForTrailers: true },
    );
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0', 'grpc-message': 'done' }));
    stream.pipe(stream);
  });
