import { once } from 'node:events';
import { connect, createServer } from 'node:http2';
import type { ClientHttp2Session, ClientHttp2Stream, Http2Server, IncomingHttpHeaders } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { deadUpstream, startTestProxy } from '#runtimes/proxy/testing.ts';
import type { TestProxy } from '#runtimes/proxy/testing.ts';
import type { Upstream } from '#runtimes/router.ts';

const HOST = 'grpc-z1.localhost';

/** A server that sends each message back as it comes, with trailers at the end like one of gRPC. */
async function startGrpcUpstream(name: string): Promise<Upstream & AsyncDisposable & { server: Http2Server }> {
  const server = createServer();
  const sessions = new Set<{ destroy(): void }>();
  server.on('session', (session) => sessions.add(session));
  server.on('stream', (stream, headers) => {
    stream.on('error', () => undefined);
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

function route(proxy: TestProxy, upstreams: Upstream[]): void {
  proxy.table.set({ serviceId: 's1', generation: 1, routes: [{ host: HOST, protocol: 'GRPC', upstreams }] });
}

function open(proxy: TestProxy): ClientHttp2Session & AsyncDisposable {
  const session = connect(`http://127.0.0.1:${proxy.port}`);
  session.on('error', () => undefined);
  return Object.assign(session, {
    [Symbol.asyncDispose]: async () => {
      session.destroy();
    },
  });
}

function call(session: ClientHttp2Session, path = '/echo', host = HOST, type = 'application/grpc'): ClientHttp2Stream {
  const headers = {
    ':method': 'POST',
    ':path': path,
    ':authority': host,
    'content-type': type,
    'x-forwarded-for': '6.6.6.6',
  };
  const stream = session.request(headers);
  stream.on('error', () => undefined);
  return stream;
}

async function headersOf(stream: ClientHttp2Stream): Promise<IncomingHttpHeaders> {
  const [headers] = await once(stream, 'response');
  return headers as IncomingHttpHeaders;
}

test('a call streams both ways and brings its trailers', async () => {
  await using upstream = await startGrpcUpstream('a');
  await using proxy = await startTestProxy();
  route(proxy, [upstream]);
  await using session = open(proxy);
  const stream = call(session);
  const head = headersOf(stream);
  stream.write('first');
  expect(JSON.parse(String((await head)['x-seen']))).toEqual({ te: 'trailers', for: '127.0.0.1', host: HOST });
  expect(String((await once(stream, 'data'))[0])).toBe('first');
  stream.write('second');
  expect(String((await once(stream, 'data'))[0])).toBe('second');
  expect(proxy.upstreams.underWay()).toBe(1);
  const trailers = once(stream, 'trailers');
  stream.resume().end();
  expect((await trailers)[0]).toMatchObject({ 'grpc-status': '0', 'grpc-message': 'done' });
  await proxy.upstreams.drained([upstream], 5000);
  expect(proxy.upstreams.underWay()).toBe(0);
});

test('an answer that is trailers only comes through', async () => {
  await using upstream = await startGrpcUpstream('a');
  await using proxy = await startTestProxy();
  route(proxy, [upstream]);
  await using session = open(proxy);
  const stream = call(session, '/refuse');
  expect(await headersOf(stream)).toMatchObject({ ':status': 200, 'grpc-status': '7' });
  stream.close();
});

test('calls of one connection are shared among the upstreams, those that take none passed over', async () => {
  await using a = await startGrpcUpstream('a');
  await using b = await startGrpcUpstream('b');
  await using proxy = await startTestProxy();
  route(proxy, [await deadUpstream(), a, b]);
  await using session = open(proxy);
  const names = new Set<unknown>();
  for (let n = 0; n < 6; n++) {
    const stream = call(session);
    stream.end('x');
    names.add((await headersOf(stream))['x-name']);
    expect(await text(stream)).toBe('x');
  }
  expect(names).toEqual(new Set(['a', 'b']));
});

test('an upstream that comes back is connected to again', async () => {
  await using proxy = await startTestProxy();
  await using session = open(proxy);
  const ask = async () => {
    const stream = call(session);
    stream.end();
    const headers = await headersOf(stream);
    stream.resume();
    return headers['x-name'] ?? headers['grpc-status'];
  };
  const first = await startGrpcUpstream('first');
  route(proxy, [first]);
  expect(await ask()).toBe('first');
  await first[Symbol.asyncDispose]();
  expect(await ask()).toBe('14');
  await using second = await startGrpcUpstream('second');
  route(proxy, [second]);
  expect(await ask()).toBe('second');
});

test('a client that gives up ends the call at the upstream', async () => {
  await using upstream = await startGrpcUpstream('a');
  await using proxy = await startTestProxy();
  route(proxy, [upstream]);
  await using session = open(proxy);
  const ended = new Promise<void>((resolve) =>
    upstream.server.on('stream', (seen) => seen.on('close', () => resolve())),
  );
  const stream = call(session);
  await headersOf(stream);
  stream.close(8);
  await ended;
  await proxy.upstreams.drained([upstream], 5000);
  expect(proxy.upstreams.underWay()).toBe(0);
});

test('failures are told in the terms of gRPC', async () => {
  await using upstream = await startGrpcUpstream('a');
  await using proxy = await startTestProxy();
  route(proxy, [upstream]);
  proxy.route('web.localhost', [upstream]);
  await using session = open(proxy);
  const ask = async (path: string, host: string) => {
    const stream = call(session, path, host);
    const headers = await headersOf(stream);
    stream.close();
    return [headers['grpc-status'], decodeURI(String(headers['grpc-message']))];
  };
  expect(await ask('/echo', 'none.localhost')).toEqual(['12', 'There is no service at none.localhost.']);
  expect(await ask('/echo', 'web.localhost')).toEqual(['12', 'The service at web.localhost is spoken to in HTTP/1.1.']);
  expect((await ask('/die', HOST))[0]).toBe('14');
  route(proxy, [await deadUpstream()]);
  expect(await ask('/echo', HOST)).toEqual(['14', `The service at ${HOST} takes no connections.`]);
  route(proxy, []);
  expect(await ask('/echo', HOST)).toEqual(['14', `The service at ${HOST} is not running.`]);
});

test('other clients of HTTP/2 get an answer of HTTP', async () => {
  await using proxy = await startTestProxy();
  await using session = open(proxy);
  const stream = call(session, '/', 'none.localhost', 'text/plain');
  expect((await headersOf(stream))[':status']).toBe(404);
  expect(await text(stream)).toBe('There is no service at none.localhost.\n');
});
