import { once } from 'node:events';
import { Agent } from 'node:http';
import { connect, createServer as createTcpServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { echo, fetchFrom, open, startTestProxy, startUpstream } from '#runtimes/proxy/testing.ts';
import type { Upstream } from '#runtimes/router.ts';

const HOST = 'app-z1.localhost';
const PLAIN = `GET /plain HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`;

/** An upstream that answers whatever comes with these bytes. */
async function rawUpstream(respond: (socket: Socket, request: string, count: number) => void) {
  let count = 0;
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('data', (bytes) => respond(socket, bytes.toString('latin1'), ++count));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const upstream: Upstream = { address: '127.0.0.1', port: (server.address() as AddressInfo).port };
  return {
    ...upstream,
    get connections() {
      return sockets.size;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Sends bytes on a connection and reads until as many answers have begun. */
async function converse(port: number, pieces: string[], answers: number): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  let said = '';
  socket.setEncoding('latin1').on('data', (part: string) => (said += part));
  // What was answered until then is what counts.
  socket.on('error', () => socket.destroy());
  for (const piece of pieces) {
    socket.write(piece, 'latin1');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const end = Date.now() + 5000;
  while (said.split('HTTP/1.1 ').length <= answers && Date.now() < end)
    await new Promise((resolve) => setTimeout(resolve, 10));
  await new Promise((resolve) => setTimeout(resolve, 20));
  socket.destroy();
  return said;
}

describe('requests on one connection', () => {
  const chunked = `POST /chunked HTTP/1.1\r\nHost: ${HOST}\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n`;
  const short = `PUT /short HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 4\r\n\r\nbody`;

  test.each([
    ['plain ones, one packet each', [PLAIN, PLAIN, PLAIN]],
    ['plain ones, all at once', [PLAIN + PLAIN + PLAIN]],
    ['plain ones, cut in the middle', [PLAIN + PLAIN.slice(0, 9), PLAIN.slice(9) + PLAIN]],
    ['a plain one, then others', [PLAIN, chunked, PLAIN]],
    ['others, then plain ones', [chunked, PLAIN, PLAIN]],
    ['some with a short body', [short, short.slice(0, -2), short.slice(-2) + PLAIN]],
    ['of all kinds at once', [PLAIN + short + chunked]],
  ])('are answered each, in their order: %s', async (_how, pieces) => {
    await using upstream = await startUpstream(echo('a'));
    await using proxy = await startTestProxy();
    proxy.route(HOST, [upstream]);
    const said = await converse(proxy.port, pieces, 3);
    const wanted = [...pieces.join('').matchAll(/ \/(\w+) HTTP/g)].map(([, path]) => path);
    expect([...said.matchAll(/"url":"\/(\w+)"/g)].map(([, path]) => path)).toEqual(wanted);
    expect([...said.matchAll(/"body":"(\w*)"/g)].map(([, body]) => body)).toEqual(
      wanted.map((path) => (path === 'plain' ? '' : 'body')),
    );
    expect([...said.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual(['200', '200', '200']);
  });

  test('arrive though the next comes while the answer before is under way', async () => {
    const { promise: go, resolve } = Promise.withResolvers<void>();
    await using upstream = await startUpstream((incoming, response) => {
      void go.then(() => response.end(incoming.url));
    });
    await using proxy = await startTestProxy();
    proxy.route(HOST, [upstream]);
    const talking = converse(proxy.port, [PLAIN, PLAIN.replace('plain', 'second'), PLAIN.replace('plain', 'third')], 3);
    setTimeout(resolve, 150);
    expect([...(await talking).matchAll(/\/(plain|second|third)/g)].map(([, path]) => path)).toEqual([
      'plain',
      'second',
      'third',
    ]);
  });

  test('end with the one that is refused', async () => {
    await using upstream = await startUpstream(echo('a'));
    await using proxy = await startTestProxy();
    proxy.route(HOST, [upstream]);
    const bad = `GET /bad HTTP/1.1\r\nHost: ${HOST}\r\nX : 1\r\n\r\n`;
    const socket = connect(proxy.port, '127.0.0.1');
    socket.write(PLAIN);
    const [first] = (await once(socket, 'data')) as [Buffer];
    expect(String(first)).toMatch(/^HTTP\/1\.1 200 /);
    socket.write(bad + PLAIN);
    expect((await text(socket)).match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 400']);
  });

  test('of a client that says no more are given up', async () => {
    const came = Promise.withResolvers<void>();
    const gone = Promise.withResolvers<void>();
    await using upstream = await startUpstream((incoming) => {
      came.resolve();
      incoming.socket.on('close', () => gone.resolve());
    });
    await using proxy = await startTestProxy();
    proxy.route(HOST, [upstream]);
    const socket = connect(proxy.port, '127.0.0.1');
    socket.write(PLAIN);
    await came.promise;
    socket.end();
    await gone.promise;
    expect(await text(socket)).toBe('');
    expect(proxy.upstreams.underWay()).toBe(0);
  });
});

describe('an upstream', () => {
  test('whose answer is followed by another one does not answer the next request with it', async () => {
    const answer = (body: string) => `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    await using upstream = await rawUpstream((socket, _request, count) => {
      // In one packet, and a moment later.
      if (count === 1) socket.write(answer('first') + answer('smuggled'));
      else if (count === 2)
        socket.write(answer('second'), () => setTimeout(() => socket.write(answer('smuggled')), 20));
      else socket.write(answer('third'));
    });
    await using proxy = await startTestProxy();
    proxy.route(HOST, [upstream]);
    const bodies: string[] = [];
    for (let n = 0; n < 3; n++) {
      bodies.push(
        await fetchFrom(proxy.port, HOST).then(
          ({ body }) => body,
          () => 'cut',
        ),
      );
      await new Promise((resolve) => setTimeout(resolve, 60));
    }
    expect(bodies).toEqual(['cut', 'second', 'third']);
    expect(upstream.connections).toBe(3);
  });

  test('that closes after each answer, or says that it will, loses no request', async () => {
    await using upstream = await rawUpstream((socket, _request, count) => {
      if (count % 2 === 0) socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
      else socket.write('HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok');
    });
    await using proxy = await startTestProxy();
    proxy.route(HOST, [upstream]);
    for (let n = 0; n < 6; n++) {
      expect(await fetchFrom(proxy.port, HOST, { method: 'POST', body: 'x' })).toMatchObject({
        status: 200,
        body: 'ok',
      });
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(upstream.connections).toBe(6);
  });

  test('that does not say how long it keeps connections gets what cannot be sent twice over recent ones only', async () => {
    await using upstream = await rawUpstream(
      (socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'),
    );
    await using proxy = await startTestProxy();
    proxy.route(HOST, [upstream]);
    const connectionsAfter = async (method: string, waitMs: number) => {
      await new Promise((resolve) => setTimeout(resolve, waitMs));
      expect(await fetchFrom(proxy.port, HOST, { method })).toMatchObject({ status: 200, body: 'ok' });
      return upstream.connections;
    };
    expect(await connectionsAfter('POST', 0)).toBe(1);
    expect(await connectionsAfter('POST', 10)).toBe(1);
    expect(await connectionsAfter('GET', 1_100)).toBe(1);
    expect(await connectionsAfter('POST', 1_100)).toBe(2);
  });

  test.each([
    ['Content-Length: 3\r\nContent-Length: 4', 'it has no single length'],
    ['Content-Length: 3\r\nTransfer-Encoding: chunked', 'it has a length and is chunked'],
    ['Transfer-Encoding: gzip', 'its transfer encoding is gzip'],
    ['X : 1', 'its head is not one of HTTP/1.1'],
  ])('that answers with %j is told to the client as 502', async (fields, why) => {
    await using upstream = await rawUpstream((socket) => void socket.write(`HTTP/1.1 200 OK\r\n${fields}\r\n\r\nabc`));
    await using proxy = await startTestProxy();
    proxy.route(HOST, [upstream]);
    const answer = { status: 502, body: `The service at ${HOST} gave an answer that is not valid: ${why}.\n` };
    expect(await fetchFrom(proxy.port, HOST)).toMatchObject(answer);
    expect(
      await fetchFrom(proxy.port, HOST, { method: 'POST', headers: { 'transfer-encoding': 'chunked' }, body: 'x' }),
    ).toMatchObject(answer);
  });

  test('that changes the protocol unasked is told to the client as 502', async () => {
    await using upstream = await rawUpstream(
      (socket) => void socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nabc'),
    );
    await using proxy = await startTestProxy();
    proxy.route(HOST, [upstream]);
    expect((await fetchFrom(proxy.port, HOST)).status).toBe(502);
    expect(
      (await fetchFrom(proxy.port, HOST, { method: 'POST', headers: { 'transfer-encoding': 'chunked' }, body: 'x' }))
        .status,
    ).toBe(502);
    expect(proxy.upstreams.underWay()).toBe(0);
  });

  test('that answers before it has the whole body is heard, and its connection is not used again', async () => {
    await using upstream = await rawUpstream((socket, _request, count) => {
      if (count === 1) socket.write('HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig');
      else if (_request.startsWith('GET')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    });
    await using proxy = await startTestProxy();
    proxy.route(HOST, [upstream]);
    const agent = new Agent({ keepAlive: true });
    const answer = await fetchFrom(proxy.port, HOST, { method: 'POST', body: 'x'.repeat(5_000_000), agent });
    agent.destroy();
    expect(answer).toMatchObject({ status: 413, body: 'big' });
    expect(await fetchFrom(proxy.port, HOST)).toMatchObject({ status: 200, body: 'ok' });
    expect(upstream.connections).toBe(2);
  });

  test('that sends chunks and trailers is passed on with both, to either kind of request', async () => {
    await using upstream = await startUpstream((incoming, response) => {
      incoming.resume();
      response.writeHead(200, { trailer: 'x-sum' });
      response.write('a'.repeat(40_000));
      response.write('b');
      response.addTrailers({ 'x-sum': '1' });
      response.end();
    });
    await using proxy = await startTestProxy();
    proxy.route(HOST, [upstream]);
    for (const options of [{}, { method: 'POST', headers: { 'transfer-encoding': 'chunked' }, body: 'x' }]) {
      const response = await open(proxy.port, HOST, options);
      expect(await text(response)).toBe(`${'a'.repeat(40_000)}b`);
      expect(response.trailers).toEqual({ 'x-sum': '1' });
    }
  });

  test('of HTTP/1.0, whose answer ends with its connection, is passed on whole', async () => {
    await using upstream = await rawUpstream((socket) => void socket.end('HTTP/1.0 200 OK\r\n\r\nsome text'));
    await using proxy = await startTestProxy();
    proxy.route(HOST, [upstream]);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (let n = 0; n < 3; n++) expect((await fetchFrom(proxy.port, HOST, { agent })).body).toBe('some text');
    agent.destroy();
  });

  test('is not read faster than the client reads', async () => {
    const size = 64 << 20;
    let written = 0;
    await using upstream = await startUpstream((_request, response) => {
      const piece = Buffer.alloc(1 << 20);
      const more = () => {
        while (written < size) {
          written += piece.length;
          if (!response.write(piece)) return void response.once('drain', more);
        }
        response.end();
      };
      more();
    });
    await using proxy = await startTestProxy();
    proxy.route(HOST, [upstream]);
    const response = await open(proxy.port, HOST);
    response.pause();
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(written).toBeLessThan(size);
    let read = 0;
    for await (const bytes of response) read += (bytes as Buffer).length;
    expect(read).toBe(size);
  });
});

test('a head that comes byte by byte is understood', async () => {
  await using upstream = await startUpstream(echo('a'));
  await using proxy = await startTestProxy();
  proxy.route(HOST, [upstream]);
  const socket = connect(proxy.port, '127.0.0.1');
  socket.setNoDelay(true);
  for (const byte of PLAIN.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n')) {
    socket.write(byte);
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(await text(socket)).toMatch(/^HTTP\/1\.1 200 OK/);
});

test('a request that says a line over several lines brings no header of its own making to the upstream', async () => {
  await using upstream = await startUpstream(echo('a'));
  await using proxy = await startTestProxy();
  proxy.route(HOST, [upstream]);
  const folded = `POST /plain HTTP/1.1\r\nHost: ${HOST}\r\nX-A: 1\r\n X-Real-Ip: 6.6.6.6\r\nConnection: close\r\n\r\n`;
  const said = await converse(proxy.port, [folded], 1);
  expect(said).toMatch(/^HTTP\/1\.1 (200|400) /);
  expect(said).not.toContain('"x-real-ip"');
});

test('a request to upgrade that has a body is refused', async () => {
  await using upstream = await startUpstream(echo('a'));
  await using proxy = await startTestProxy();
  proxy.route(HOST, [upstream]);
  const fields = 'Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 5';
  const said = await converse(proxy.port, [`GET / HTTP/1.1\r\nHost: ${HOST}\r\n${fields}\r\n\r\nGET /`], 1);
  expect(said).toMatch(/^HTTP\/1\.1 400 /);
  expect(upstream.connections).toBe(0);
});
