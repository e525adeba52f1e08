import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import type { ProxyContract } from '#runtimes/proxy/contract/setup.ts';
import { deadUpstream, echo, rawUpstream, startUpstream } from '#runtimes/proxy/contract/upstreams.ts';
import { connectRaw, converse, fetchFrom, open } from '#runtimes/proxy/contract/visitors.ts';

/** Tests of requests and answers of honest visitors and workloads. */
export function describeForwarding(contract: ProxyContract): void {
  describeRequests(contract);
  describeStreaming(contract);
  describeConnections(contract);
  describeSeveralUpstreams(contract);
}

function describeRequests({ shared, gives }: ProxyContract): void {
  test('a request reaches the upstream with method, path, query, headers and body, and so does the answer', async () => {
    await using upstream = await startUpstream(echo('a'));
    const proxy = shared();
    const host = await proxy.routed([upstream]);
    const headers = { 'content-type': 'text/plain', cookie: 'a=1; b=2', 'x-own': 'yes' };
    const answer = await proxy.fetch(host, {
      method: 'PUT',
      path: '/a%20b//%C3%BC/../x?q=%2F&q=2',
      headers,
      body: 'grüße',
    });
    expect(answer).toMatchObject({ status: 200, headers: { 'x-upstream': 'a' } });
    const seen = JSON.parse(answer.body);
    expect(seen).toMatchObject({ method: 'PUT', url: '/a%20b//%C3%BC/../x?q=%2F&q=2', body: 'grüße' });
    expect(seen.headers).toMatchObject({ ...headers, host });
  });

  test('a request loses the headers of its connection in both directions, those that Connection names too', async () => {
    await using upstream = await startUpstream((incoming, response) => {
      const headers = {
        connection: 'keep-alive, x-hop',
        'x-hop': 'secret',
        'keep-alive': 'timeout=99',
        'x-end': 'kept',
      };
      response.writeHead(200, headers).end(JSON.stringify(incoming.headers));
    });
    const proxy = shared();
    const host = await proxy.routed([upstream]);
    const headers = {
      connection: 'keep-alive, x-mine',
      'x-mine': '1',
      te: 'trailers',
      'proxy-authorization': 'Basic x',
    };
    const { headers: answered, body } = await proxy.fetch(host, { headers });
    expect(answered).not.toHaveProperty('x-hop');
    expect(answered['keep-alive'] ?? '').not.toContain('99');
    expect(answered['x-end']).toBe('kept');
    for (const name of ['x-mine', 'proxy-authorization']) expect(JSON.parse(body)).not.toHaveProperty(name);
  });

  test.each([':8080', '.', 'upper'])('a request finds its host in another spelling (%s)', async (change) => {
    await using upstream = await startUpstream(echo('a'));
    const proxy = shared();
    const host = await proxy.routed([upstream]);
    const spelled = change === 'upper' ? host.toUpperCase() : host + change;
    const { status, body } = await proxy.fetch(spelled);
    expect(status).toBe(200);
    expect(JSON.parse(body).headers.host).toBe(spelled);
  });

  test('repeated headers arrive each, in both directions', async () => {
    await using upstream = await startUpstream((incoming, response) => {
      response.writeHead(200, { 'set-cookie': ['a=1', 'b=2'] }).end(incoming.headers['x-list']);
    });
    const proxy = shared();
    const host = await proxy.routed([upstream]);
    const { headers, body } = await proxy.fetch(host, { headers: { 'x-list': ['1', '2'] as never } });
    expect(headers['set-cookie']).toEqual(['a=1', 'b=2']);
    expect(body).toBe('1, 2');
  });

  test('a request with Expect: 100-continue is let in and answered', async () => {
    await using upstream = await startUpstream(echo('a'));
    const proxy = shared();
    const host = await proxy.routed([upstream]);
    const headers = { host, expect: '100-continue' };
    const sent = request({ port: proxy.port, host: '127.0.0.1', method: 'POST', agent: false, headers });
    sent.flushHeaders();
    await once(sent, 'continue');
    sent.end('body');
    const [response] = await once(sent, 'response');
    expect(JSON.parse(await text(response))).toMatchObject({ body: 'body' });
  });

  test('a request that offers h2c is answered as if it had not', async () => {
    await using upstream = await startUpstream(echo('a'));
    const proxy = shared();
    const host = await proxy.routed([upstream]);
    const headers = { connection: 'Upgrade, HTTP2-Settings', upgrade: 'h2c', 'http2-settings': 'AAMAAABk' };
    const { status, body } = await proxy.fetch(host, { headers });
    expect(status).toBe(200);
    expect(JSON.parse(body).headers).not.toHaveProperty('upgrade');
    expect(JSON.parse(body).headers).not.toHaveProperty('http2-settings');
  });

  test.each([
    ['HEAD', 200, 'content-length'],
    ['GET', 204, 'x-empty'],
    ['GET', 304, 'etag'],
  ])('%s answered %i without a body keeps its headers', async (method, status, header) => {
    await using upstream = await startUpstream((_, response) => {
      response
        .writeHead(status, status === 200 ? { 'content-length': '12345' } : { 'x-empty': 'yes', etag: '"1"' })
        .end();
    });
    const proxy = shared();
    const host = await proxy.routed([upstream]);
    const answer = await proxy.fetch(host, { method });
    expect(answer).toMatchObject({ status, body: '' });
    expect(answer.headers).toHaveProperty(header);
  });

  if (gives('trailers'))
    test('chunks and trailers of an answer are passed on', async () => {
      await using upstream = await startUpstream((incoming, response) => {
        incoming.resume();
        response.writeHead(200, { trailer: 'x-sum' });
        response.write('a'.repeat(40_000));
        response.write('b');
        response.addTrailers({ 'x-sum': '1' });
        response.end();
      });
      const proxy = shared();
      const host = await proxy.routed([upstream]);
      for (const how of [{}, { method: 'POST', headers: { 'transfer-encoding': 'chunked' }, body: 'x' }]) {
        const response = await open(proxy.port, host, { ...how, agent: false });
        expect(await text(response)).toBe(`${'a'.repeat(40_000)}b`);
        expect(response.trailers).toEqual({ 'x-sum': '1' });
      }
    });

  test('an HTTP/1.0 answer, which ends with its connection, is passed on whole', async () => {
    await using upstream = await rawUpstream((socket) => void socket.end('HTTP/1.0 200 OK\r\n\r\nsome text'));
    const proxy = shared();
    const host = await proxy.routed([upstream]);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (let n = 0; n < 3; n++) expect((await proxy.fetch(host, { agent })).body).toBe('some text');
    agent.destroy();
  });

  test('a service without instances answers 503', async () => {
    const proxy = shared();
    expect((await proxy.fetch(await proxy.routed([]))).status).toBe(503);
  });

  test('a service whose instances take no connections answers 502 or 503', async () => {
    const proxy = shared();
    const host = await proxy.routed([await deadUpstream(), await deadUpstream()]);
    const answer = await proxy.fetch(host, { method: 'POST', body: 'x'.repeat(100_000) });
    expect([502, 503]).toContain(answer.status);
  });
}

function describeStreaming({ shared, gives }: ProxyContract): void {
  test('an answer arrives piece by piece, its head before the first of them', async () => {
    const { promise: go, resolve } = Promise.withResolvers<void>();
    await using upstream = await startUpstream((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
      void go.then(() => response.write('data: 1\n\n'));
    });
    const proxy = shared();
    const response = await open(proxy.port, await proxy.routed([upstream]));
    expect(response.headers['content-type']).toBe('text/event-stream');
    resolve();
    const [piece] = await once(response, 'data');
    expect(String(piece)).toBe('data: 1\n\n');
    response.destroy();
  });

  test('a large body passes both ways unchanged', async () => {
    await using upstream = await startUpstream((incoming, response) => void incoming.pipe(response));
    const proxy = shared();
    const body = '0123456789abcdef'.repeat(1 << 18);
    const answer = await proxy.fetch(await proxy.routed([upstream]), { method: 'POST', body });
    expect(answer.body.length).toBe(body.length);
    expect(answer.body === body).toBe(true);
  });

  test('a client that goes away ends the request at the upstream', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    await using upstream = await startUpstream((incoming, response) => {
      response.write('some');
      incoming.socket.on('close', () => resolve());
    });
    const proxy = shared();
    const response = await open(proxy.port, await proxy.routed([upstream]));
    response.on('error', () => undefined);
    response.destroy();
    await promise;
    await proxy.subject.router.drained([{ address: '127.0.0.1', port: upstream.port }], 15_000);
  });

  test('an answer is not read faster than the client reads it', async () => {
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
    const proxy = shared();
    const response = await open(proxy.port, await proxy.routed([upstream]));
    response.pause();
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(written).toBeLessThan(size);
    let read = 0;
    for await (const bytes of response) read += (bytes as Buffer).length;
    expect(read).toBe(size);
  });

  if (gives('earlyAnswers'))
    test('an answer before the whole body is heard, and its connection is not used again before the body is whole', async () => {
      await using upstream = await rawUpstream((socket, packet, count) => {
        if (count === 1) socket.write('HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig');
        else if (packet.startsWith('GET')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
      });
      const proxy = shared();
      const host = await proxy.routed([upstream]);
      const agent = new Agent({ keepAlive: true });
      const length = 5_000_000;
      const answer = await proxy.fetch(host, { method: 'POST', body: 'x'.repeat(length), agent });
      agent.destroy();
      expect(answer).toMatchObject({ status: 413, body: 'big' });
      expect(await proxy.fetch(host)).toMatchObject({ status: 200, body: 'ok' });
      // A fast proxy may have sent the whole body by then: only then can the connection carry another request.
      const broken = upstream.connections.filter(({ received }) => {
        const [, rest] = received.split('\r\n\r\n');
        return received.startsWith('POST') && /GET \//.test(received) && rest!.indexOf('GET /') !== length;
      });
      expect(broken.length).toBe(0);
    });
}

function describeConnections({ shared }: ProxyContract): void {
  test('connections to the upstream are kept and used again', async () => {
    await using upstream = await startUpstream(echo('a'));
    const proxy = shared();
    const host = await proxy.routed([upstream]);
    for (let n = 0; n < 20; n++) expect((await proxy.fetch(host)).status).toBe(200);
    expect(upstream.connections).toBe(1);
  });

  test('connections of the client are kept, and closed when it asks for that', async () => {
    await using upstream = await startUpstream(echo('a'));
    const proxy = shared();
    const host = await proxy.routed([upstream]);
    await using visitor = await connectRaw(proxy.port);
    visitor.socket.write(`GET /1 HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    await visitor.until((said) => said.includes('"url":"/1"'));
    visitor.socket.write(`GET /2 HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    expect(await visitor.closed()).toMatch(/"url":"\/2"/);
  });

  const plain = (host: string, path = 'plain') => `GET /${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
  const chunked = (host: string) =>
    `POST /chunked HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n`;
  const short = (host: string) => `PUT /short HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 4\r\n\r\nbody`;

  test.each<[string, (host: string) => string[]]>([
    ['plain ones, one packet each', (h) => [plain(h), plain(h), plain(h)]],
    ['plain ones, all at once', (h) => [plain(h) + plain(h) + plain(h)]],
    ['plain ones, cut in the middle', (h) => [plain(h) + plain(h).slice(0, 9), plain(h).slice(9) + plain(h)]],
    ['a plain one, then others', (h) => [plain(h), chunked(h), plain(h)]],
    ['others, then plain ones', (h) => [chunked(h), plain(h), plain(h)]],
    ['some with a short body', (h) => [short(h), short(h).slice(0, -2), short(h).slice(-2) + plain(h)]],
    ['of all kinds at once', (h) => [plain(h) + short(h) + chunked(h)]],
  ])('requests on one connection are answered each, in their order: %s', async (_how, make) => {
    await using upstream = await startUpstream(echo('a'));
    const proxy = shared();
    const pieces = make(await proxy.routed([upstream]));
    const said = await converse(proxy.port, pieces, 3);
    const wanted = [...pieces.join('').matchAll(/ \/(\w+) HTTP/g)].map(([, path]) => path);
    expect([...said.matchAll(/"url":"\/(\w+)"/g)].map(([, path]) => path)).toEqual(wanted);
    expect([...said.matchAll(/"body":"(\w*)"/g)].map(([, body]) => body)).toEqual(
      wanted.map((path) => (path === 'plain' ? '' : 'body')),
    );
    expect([...said.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual(['200', '200', '200']);
  });

  test('a head that comes byte by byte is understood', async () => {
    await using upstream = await startUpstream(echo('a'));
    const proxy = shared();
    const host = await proxy.routed([upstream]);
    await using visitor = await connectRaw(proxy.port);
    for (const byte of plain(host).replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n')) {
      visitor.socket.write(byte);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await visitor.closed()).toMatch(/^HTTP\/1\.1 200 OK/);
  });

  test('an upstream that closes after each answer, or says that it will, loses no request', async () => {
    await using upstream = await rawUpstream((socket, _request, count) => {
      if (count % 2 === 0) socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
      else socket.write('HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok');
    });
    const proxy = shared();
    const host = await proxy.routed([upstream]);
    for (let n = 0; n < 6; n++) {
      // The body is empty: a second packet would count as a request.
      expect(await proxy.fetch(host, { method: 'POST' })).toMatchObject({ status: 200, body: 'ok' });
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(upstream.connections).toHaveLength(6);
  });
}

function describeSeveralUpstreams({ shared, gives }: ProxyContract): void {
  test('several upstreams share the requests', async () => {
    await using a = await startUpstream(echo('a'));
    await using b = await startUpstream(echo('b'));
    const proxy = shared();
    const host = await proxy.routed([a, b]);
    const names: string[] = [];
    for (let n = 0; n < 8; n++) names.push(await proxy.nameAt(host));
    expect(names.toSorted()).toEqual(['a', 'a', 'a', 'a', 'b', 'b', 'b', 'b']);
  });

  if (gives('bodiesSentAgain'))
    test('an upstream that takes no connections is passed over, and the body arrives whole at another', async () => {
      await using living = await startUpstream(echo('living'));
      const proxy = shared();
      const host = await proxy.routed([await deadUpstream(), living, await deadUpstream()]);
      for (let n = 0; n < 6; n++) {
        const answer = await fetchFrom(proxy.port, host, { method: 'POST', body: `body ${n}` });
        expect(JSON.parse(answer.body)).toMatchObject({ name: 'living', body: `body ${n}` });
      }
    });

  test('a POST that was sent is never sent to another upstream', async () => {
    let seen = 0;
    const drop = (incoming: Parameters<ReturnType<typeof echo>>[0]) => {
      seen++;
      incoming.socket.destroy();
    };
    await using a = await startUpstream(drop);
    await using b = await startUpstream(drop);
    const proxy = shared();
    const host = await proxy.routed([a, b]);
    expect((await proxy.fetch(host, { method: 'POST', body: 'pay' })).status).toBe(502);
    expect(seen).toBe(1);
  });
}
