import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage, RequestListener, RequestOptions, Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { createProxyServer } from '#runtimes/proxy/proxy-server.ts';
import { RouteTable } from '#runtimes/proxy/route-table.ts';
import { DEFAULT_TIMES, Upstreams } from '#runtimes/proxy/upstreams.ts';
import type { UpstreamTimes } from '#runtimes/proxy/upstreams.ts';
import type { Upstream } from '#runtimes/router.ts';

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: string;
}

/** A server on a free port of loopback, closed with everything that is connected to it. */
export interface TestUpstream extends Upstream, AsyncDisposable {
  server: Server;
  /** Connections that it took. */
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

export async function closeServer(server: Server): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve));
  server.closeAllConnections();
  await closed;
}

/** An upstream that answers with its name, and what came with the request. */
export const echo =
  (name: string): RequestListener =>
  (incoming, response) => {
    void text(incoming).then((body) => {
      const { method, url, headers } = incoming;
      response.writeHead(200, { 'content-type': 'application/json', 'x-upstream': name });
      response.end(JSON.stringify({ name, method, url, headers, body }));
    });
  };

/** An address that nobody listens on. */
export async function deadUpstream(): Promise<Upstream> {
  await using upstream = await startUpstream(() => undefined);
  return { address: upstream.address, port: upstream.port };
}

/** The proxy's server in this process. */
export interface TestProxy extends AsyncDisposable {
  port: number;
  table: RouteTable;
  upstreams: Upstreams;
  /** Routes a host to upstreams, as service `service`. */
  route(host: string, upstreams: Upstream[], service?: string): void;
}

export async function startTestProxy(times: Partial<UpstreamTimes> = {}): Promise<TestProxy> {
  const upstreams = new Upstreams({ ...DEFAULT_TIMES, ...times });
  const table = new RouteTable(upstreams);
  const { server, end } = createProxyServer(table);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    table,
    upstreams,
    route: (host, to, serviceId = host) =>
      table.set({ serviceId, generation: 1, routes: [{ host, protocol: 'HTTP', upstreams: to }] }),
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, 'close');
      end();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Sends a request; resolves with the head of the response. */
export async function open(
  port: number,
  host: string,
  options: RequestOptions & { body?: string } = {},
): Promise<IncomingMessage> {
  const { body, ...others } = options;
  const headers = { host, ...(others.headers as Record<string, string> | undefined) };
  const sent = request({ port, host: '127.0.0.1', agent: false, ...others, headers });
  sent.end(body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return response;
}

export async function fetchFrom(port: number, host: string, options: Parameters<typeof open>[2] = {}): Promise<Answer> {
  const response = await open(port, host, options);
  return { status: response.statusCode!, headers: response.headers, body: await text(response) };
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
