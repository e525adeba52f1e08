import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { deadUpstream, echo, serveWebSockets, startTestProxy, startUpstream } from '#runtimes/proxy/testing.ts';

const HOST = '127.0.0.1';

const HANDSHAKE = [
  'GET /socket HTTP/1.1',
  `Host: ${HOST}`,
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  '',
  '',
].join('\r\n');

test('a websocket passes texts both ways, counts as under way, and ends at both sides', async () => {
  await using upstream = await startUpstream(echo('a'));
  serveWebSockets(upstream.server);
  await using proxy = await startTestProxy();
  proxy.route(HOST, [upstream]);
  const client = new WebSocket(`ws://${HOST}:${proxy.port}/socket`);
  await once(client, 'open');
  for (const word of ['first', 'second']) {
    client.send(word);
    const [event] = (await once(client, 'message')) as [MessageEvent];
    expect(event.data).toBe(word.toUpperCase());
  }
  expect(proxy.upstreams.underWay()).toBe(1);
  client.close();
  await once(client, 'close');
  await proxy.upstreams.drained([upstream], 5000);
  expect(proxy.upstreams.underWay()).toBe(0);
});

test('a websocket finds another upstream when one takes no connections', async () => {
  await using upstream = await startUpstream(echo('a'));
  serveWebSockets(upstream.server);
  await using proxy = await startTestProxy();
  proxy.route(HOST, [await deadUpstream(), upstream]);
  const client = new WebSocket(`ws://${HOST}:${proxy.port}/`);
  await once(client, 'open');
  client.close();
  await once(client, 'close');
});

test('bytes that come with the handshake are not lost', async () => {
  await using upstream = await startUpstream(echo('a'));
  upstream.server.on('upgrade', (_request, socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello');
    socket.pipe(socket);
  });
  await using proxy = await startTestProxy();
  proxy.route(HOST, [upstream]);
  const socket = connect(proxy.port, HOST);
  socket.end(`${HANDSHAKE}early`);
  const answer = await text(socket);
  expect(answer).toMatch(/^HTTP\/1\.1 101 /);
  expect(answer).toContain('\r\n\r\nhelloearly');
});

test.each([
  ['refuses the handshake', 403, 'not for you'],
  ['does not know of websockets', 200, 'plain answer'],
])('the answer of an upstream that %s reaches the client', async (_what, status, body) => {
  await using upstream = await startUpstream((_request, response) => response.writeHead(status).end(body));
  await using proxy = await startTestProxy();
  proxy.route(HOST, [upstream]);
  const socket = connect(proxy.port, HOST);
  socket.write(HANDSHAKE);
  const answer = await text(socket);
  expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  expect(answer).toContain(body);
  await proxy.upstreams.drained([upstream], 5000);
  expect(proxy.upstreams.underWay()).toBe(0);
});

test('a websocket for an unknown host is answered with 404', async () => {
  await using proxy = await startTestProxy();
  const socket = connect(proxy.port, HOST);
  socket.write(HANDSHAKE);
  expect(await text(socket)).toMatch(/^HTTP\/1\.1 404 [^]*There is no service at 127\.0\.0\.1/);
});
