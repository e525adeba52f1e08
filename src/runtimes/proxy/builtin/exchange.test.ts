import { once } from 'node:events';
import { constants } from 'node:http2';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { startTestProxy } from '#runtimes/proxy/builtin/testing.ts';
import {
  deadUpstream,
  echo,
  rawUpstream,
  startGrpcUpstream,
  startHttp2Upstream,
  startUpstream,
} from '#runtimes/proxy/contract/upstreams.ts';
import { call, connectRaw, fetchFrom, headersOf, openHttp2 } from '#runtimes/proxy/contract/visitors.ts';

const HOST = 'app-z1.localhost';

test('404 for an unknown host is a page, JSON or text, whatever the visitor asks for', async () => {
  await using proxy = await startTestProxy();
  const ask = (accept: string) => fetchFrom(proxy.port, 'un<known.localhost', { headers: { accept } });
  const page = await ask('text/html,*/*');
  expect(page).toMatchObject({ status: 404, headers: { 'content-type': 'text/html; charset=utf-8' } });
  expect(page.body).toContain('There is no service at un&#60;known.localhost.');
  const message = 'There is no service at un<known.localhost.';
  expect(JSON.parse((await ask('application/json')).body)).toEqual({ status: 404, error: 'Not Found', message });
  expect((await ask('*/*')).body).toBe(`${message}\n`);
});

test('a service without instances answers 503 and when to come again', async () => {
  await using proxy = await startTestProxy();
  proxy.route(HOST, []);
  expect(await fetchFrom(proxy.port, HOST)).toMatchObject({
    status: 503,
    headers: { 'retry-after': '1' },
    body: `The service at ${HOST} is not running.\n`,
  });
});

test('a service that takes no connections is told as 502', async () => {
  await using proxy = await startTestProxy();
  proxy.route(HOST, [await deadUpstream(), await deadUpstream()]);
  const answer = await fetchFrom(proxy.port, HOST, { method: 'POST', body: 'x'.repeat(100_000) });
  expect(answer).toMatchObject({ status: 502, body: `The service at ${HOST} takes no connections.\n` });
  expect(proxy.upstreams.underWay()).toBe(0);
});

test('a service that lets wait too long is told as 504', async () => {
  await using upstream = await startUpstream(() => undefined);
  await using proxy = await startTestProxy({ answerMs: 500 });
  proxy.route(HOST, [upstream]);
  expect(await fetchFrom(proxy.port, HOST)).toMatchObject({ status: 504, body: expect.stringContaining('in time') });
  expect(proxy.upstreams.underWay()).toBe(0);
});

test('a service that answers in another encoding than chunked is told as 502', async () => {
  await using upstream = await rawUpstream(
    (socket) => void socket.end('HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc'),
  );
  await using proxy = await startTestProxy();
  proxy.route(HOST, [upstream]);
  const body = `The service at ${HOST} gave an answer that is not valid: its transfer encoding is gzip.\n`;
  expect(await fetchFrom(proxy.port, HOST)).toMatchObject({ status: 502, body });
});

test('a request in absolute form is refused: the proxy is not a forward proxy', async () => {
  await using proxy = await startTestProxy();
  const { status, body } = await fetchFrom(proxy.port, HOST, { path: 'http://elsewhere.example/' });
  expect(status).toBe(400);
  expect(body).toContain('not a forward proxy');
});

test('a GET whose connection ended before any answer is sent once more, not for ever', async () => {
  let seen = 0;
  await using upstream = await startUpstream((incoming, response) => {
    if (++seen < 2) incoming.socket.destroy();
    else response.end('second time');
  });
  await using broken = await startUpstream((incoming) => incoming.socket.destroy());
  await using proxy = await startTestProxy();
  proxy.route(HOST, [upstream]);
  proxy.route('broken.localhost', [broken]);
  expect(await fetchFrom(proxy.port, HOST)).toMatchObject({ status: 200, body: 'second time' });
  expect(await fetchFrom(proxy.port, 'broken.localhost')).toMatchObject({ status: 502 });
  expect(broken.connections).toBe(2);
});

test('connections to what no route names any more are closed', async () => {
  await using upstream = await startUpstream(echo('a'));
  await using proxy = await startTestProxy();
  proxy.route(HOST, [upstream]);
  const closed = new Promise<void>((resolve) => {
    upstream.server.on('connection', (socket) => socket.on('close', () => resolve()));
  });
  await fetchFrom(proxy.port, HOST);
  proxy.table.remove(HOST);
  await closed;
});

test('failures of gRPC calls are told in the terms of gRPC', async () => {
  await using upstream = await startGrpcUpstream('a');
  await using proxy = await startTestProxy();
  const route = (upstreams: Parameters<typeof proxy.route>[1]) =>
    proxy.table.set({ serviceId: 's1', generation: 1, routes: [{ host: HOST, protocol: 'GRPC', upstreams }] });
  route([upstream]);
  proxy.route('web.localhost', [upstream]);
  await using session = openHttp2(proxy.port);
  const ask = async (path: string, host: string) => {
    const stream = call(session, host, path);
    const headers = await headersOf(stream);
    stream.close();
    return [headers['grpc-status'], decodeURI(String(headers['grpc-message']))];
  };
  expect(await ask('/echo', 'none.localhost')).toEqual(['12', 'There is no service at none.localhost.']);
  expect(await ask('/echo', 'web.localhost')).toEqual(['12', 'The service at web.localhost is spoken to in HTTP/1.1.']);
  expect((await ask('/die', HOST))[0]).toBe('14');
  route([await deadUpstream()]);
  expect(await ask('/echo', HOST)).toEqual(['14', `The service at ${HOST} takes no connections.`]);
  route([]);
  expect(await ask('/echo', HOST)).toEqual(['14', `The service at ${HOST} is not running.`]);
});

test('a gRPC call that its visitor cancels while the upstream is being connected to leaves nothing under way', async () => {
  // Streams for as long as the visitor listens.
  await using upstream = await startHttp2Upstream((stream, headers) =>
    stream.respond({ ':status': 200 }, { endStream: headers[':path'] === '/short' }),
  );
  await using proxy = await startTestProxy();
  proxy.table.set({
    serviceId: 's1',
    generation: 1,
    routes: [{ host: HOST, protocol: 'GRPC', upstreams: [upstream] }],
  });
  // The test decides when the connection is established.
  const state = proxy.upstreams.acquire(upstream);
  const [asked, connected] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const session = state.session.bind(state);
  state.session = async () => {
    asked.resolve();
    await connected.promise;
    return session();
  };
  await using visitor = openHttp2(proxy.port);
  const cancelled = call(visitor, HOST);
  await asked.promise;
  cancelled.close(constants.NGHTTP2_CANCEL);
  await once(cancelled, 'close');
  // The answer to a ping sent after the cancellation shows that the proxy has read both.
  await new Promise((resolve) => visitor.ping(resolve));
  connected.resolve();
  const next = call(visitor, HOST, '/short');
  next.end();
  expect((await headersOf(next))[':status']).toBe(200);
  next.close();
  await expect.poll(() => proxy.upstreams.underWay()).toBe(0);
});

test('clients of HTTP/2 that do not speak gRPC get an answer of HTTP', async () => {
  await using proxy = await startTestProxy();
  await using session = openHttp2(proxy.port);
  const stream = call(session, 'none.localhost', '/', { 'content-type': 'text/plain' });
  expect((await headersOf(stream))[':status']).toBe(404);
  expect(await text(stream)).toBe('There is no service at none.localhost.\n');
});

test('more streams than the limit at once on one connection are refused', async () => {
  await using upstream = await startGrpcUpstream('a');
  await using proxy = await startTestProxy({ streams: 2 });
  proxy.table.set({
    serviceId: 's1',
    generation: 1,
    routes: [{ host: HOST, protocol: 'GRPC', upstreams: [upstream] }],
  });
  await using session = openHttp2(proxy.port);
  await once(session, 'remoteSettings');
  expect(session.remoteSettings.maxConcurrentStreams).toBe(2);
});

test('a visitor that pipelines more requests than may wait loses its connection, and the upstream hears of the first only', async () => {
  const paths: string[] = [];
  await using upstream = await startUpstream((incoming) => void paths.push(incoming.url!));
  await using proxy = await startTestProxy({ pipelined: 5 });
  proxy.route(HOST, [upstream]);
  await using visitor = await connectRaw(proxy.port);
  const asked = (count: number) =>
    Array.from({ length: count }, (_, n) => `GET /${n} HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`).join('');
  visitor.socket.write(asked(1));
  await expect.poll(() => paths.length).toBe(1);
  visitor.socket.write(asked(7));
  expect(await visitor.closed()).toBe('');
  await expect.poll(() => proxy.upstreams.underWay()).toBe(0);
  expect(paths).toEqual(['/0']);
});

test('a visitor that leaves while its requests wait leaves nothing under way', async () => {
  await using upstream = await startUpstream(() => undefined);
  await using proxy = await startTestProxy();
  proxy.route(HOST, [upstream]);
  await using visitor = await connectRaw(proxy.port);
  const came = once(upstream.server, 'request');
  visitor.socket.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`.repeat(3));
  await came;
  visitor.socket.destroy();
  await expect.poll(() => proxy.upstreams.underWay()).toBe(0);
});

test('a visitor that takes nothing of its answer is cut off although it goes on to send', async () => {
  await using upstream = await startUpstream((incoming, response) => {
    incoming.resume().on('error', () => undefined);
    response.write(Buffer.alloc(32 << 20, 'x'));
  });
  await using proxy = await startTestProxy({ stallMs: 500 });
  proxy.route(HOST, [upstream]);
  await using visitor = await connectRaw(proxy.port);
  visitor.socket.pause();
  visitor.socket.write(`POST / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 1000000000\r\n\r\n`);
  const came = once(upstream.server, 'request');
  const trickle = setInterval(() => visitor.socket.write('x'), 20);
  try {
    await came;
    await expect.poll(() => proxy.upstreams.underWay()).toBe(0);
  } finally {
    clearInterval(trickle);
  }
});
