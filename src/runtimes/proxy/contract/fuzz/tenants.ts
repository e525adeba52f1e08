import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import { createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { HOSTS } from '#runtimes/proxy/contract/fuzz/exchanges.ts';
import type { Step } from '#runtimes/proxy/contract/fuzz/step.ts';
import { startHttp2Upstream } from '#runtimes/proxy/contract/upstreams.ts';
import { valuesOf } from '#runtimes/proxy/contract/witness.ts';
import type { Upstream } from '#runtimes/router.ts';

/** Reports a request that may not have reached an upstream. `text` names the exchange if it can be told. */
export type Report = (text: string, what: string) => void;

export interface Tenant extends AsyncDisposable {
  host: string;
  upstream: Upstream;
  protocol: 'HTTP' | 'GRPC';
  closeIdle(): void;
}

const portOf = (server: { address(): unknown }): number => (server.address() as AddressInfo).port;
const bare = (host: string): string =>
  host
    .toLowerCase()
    .replace(/:\d{1,5}$/, '')
    .replace(/\.$/, '');

/** Checks a request at an upstream: it must be for this tenant, and sent by the proxy, which states its origin. */
function inspect(report: Report, tenant: string, where: string, hosts: string[], peers: string[]): void {
  if (hosts.length !== 1 || bare(hosts[0]!) !== tenant)
    report(where, `A request for ${JSON.stringify(hosts)} reached the upstream of ${tenant}.`);
  if (peers.length !== 1 || peers[0] !== '127.0.0.1')
    report(where, `The upstream of ${tenant} read a request that names its client ${JSON.stringify(peers)}.`);
}

/** Errors of a body that its visitor did not complete; any other parser error means that the proxy sent invalid HTTP. */
const CUT = new Set([
  'ECONNRESET',
  'EPIPE',
  'HPE_INVALID_EOF_STATE',
  'ERR_HTTP_REQUEST_TIMEOUT',
  'ERR_STREAM_PREMATURE_CLOSE',
]);

/** Returns whether a packet is a whole request with a method that Node's parser does not know; a proxy may pass it on. */
const isOddMethod = (packet: string): boolean =>
  /^[\w!#$%&'*+.^`|~-]+ \S+ HTTP\/1\.1\r\n/.test(packet) && /\r\nX-Forwarded-For: 127\.0\.0\.1\r\n/i.test(packet);

/** Starts a service that parses as leniently as Node can and answers each request with its path and body. */
export async function plainTenant(host: string, report: Report): Promise<Tenant> {
  const server = createServer({ insecureHTTPParser: true, keepAliveTimeout: 5_000, maxHeaderSize: 1 << 20 });
  const check = (request: IncomingMessage) => {
    const seen = { line: '', rawHeaders: request.rawHeaders, body: '' };
    inspect(report, host, request.url ?? '', valuesOf(seen, 'host'), valuesOf(seen, 'x-forwarded-for'));
  };
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    check(request);
    let body = '';
    request.setEncoding('latin1').on('data', (part: string) => (body += part));
    request.on('error', () => undefined);
    request.on('end', () => {
      const answer = JSON.stringify({ at: request.url, body });
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(answer) });
      response.end(answer);
    });
  });
  server.on('upgrade', (request, socket: Socket) => {
    check(request);
    socket.on('error', () => socket.destroy());
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    socket.pipe(socket);
  });
  server.on('clientError', (error: NodeJS.ErrnoException & { rawPacket?: Buffer }, socket) => {
    socket.destroy();
    const packet = error.rawPacket?.toString('latin1') ?? '';
    if (CUT.has(error.code ?? '') || isOddMethod(packet)) return;
    report(packet, `The upstream of ${host} was sent what is not HTTP: ${error.message}.`);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    host,
    protocol: 'HTTP',
    upstream: { address: '127.0.0.1', port: portOf(server) },
    closeIdle: () => server.closeIdleConnections(),
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

export async function grpcTenant(report: Report): Promise<Tenant> {
  const upstream = await startHttp2Upstream((stream, fields) => {
    const peer = [fields['x-forwarded-for'] ?? []].flat();
    inspect(report, HOSTS.grpc, fields[':path'] ?? '', [fields[':authority'] ?? fields.host ?? ''], peer);
    stream.resume();
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    stream.end(`at ${fields[':path']}`);
  });
  return {
    host: HOSTS.grpc,
    protocol: 'GRPC',
    upstream: { address: upstream.address, port: upstream.port },
    closeIdle: () => undefined,
    [Symbol.asyncDispose]: () => upstream[Symbol.asyncDispose](),
  };
}

/** Performs the steps of one side of a connection; stops when the connection has ended. */
export async function take(steps: readonly Step[], socket: Socket): Promise<void> {
  for (const step of steps) {
    if (socket.destroyed || !socket.writable) return;
    if ('write' in step) socket.write(step.write, 'latin1');
    else if ('pause' in step) await sleep(step.pause);
    else if ('end' in step) socket.end();
    else socket.resetAndDestroy();
  }
}

/** Starts the service whose answer is chosen by the exchange that its request names. */
export async function hostileTenant(report: Report, answerOf: (id: number) => readonly Step[]): Promise<Tenant> {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    let head = '';
    socket.setEncoding('latin1').on('data', (part: string) => {
      head += part;
      const end = head.indexOf('\r\n\r\n');
      if (end < 0 || !/^[A-Z]+ \/x\//.test(head)) {
        // The rest of a body.
        if (!/^[A-Z]+ /.test(head)) head = '';
        return;
      }
      const lines = head.slice(0, end).split('\r\n');
      const values = (name: string) =>
        lines
          .filter((line) => line.toLowerCase().startsWith(`${name}:`))
          .map((line) => line.slice(name.length + 1).trim());
      inspect(report, HOSTS.hostile, lines[0]!, values('host'), values('x-forwarded-for'));
      const id = Number(/ \/x\/(\d+)\//.exec(lines[0]!)?.[1]);
      head = '';
      void take(answerOf(id), socket);
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const destroy = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    host: HOSTS.hostile,
    protocol: 'HTTP',
    upstream: { address: '127.0.0.1', port: portOf(server) },
    closeIdle: destroy,
    [Symbol.asyncDispose]: async () => {
      destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
