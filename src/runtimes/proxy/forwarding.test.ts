import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { deadUpstream, echo, fetchFrom, open, startTestProxy, startUpstream } from '#runtimes/proxy/testing.ts';

const HOST = 'app-z1.localhost';

describe('a request', () => {
  test('reaches the upstream with method, path, query, headers and body, and so does the answer', async () => {
    await using upstream = await startUpstream(echo('a'));
    await using proxy = await startTestProxy();
    proxy.route(HOST, [upstream]);
    const headers = { 'content-type': 'text/plain', cookie: 'a=1; b=2', 'x-own': 'yes' };
    const {
      status,
      headers: answered,
      body,
    } = await fetchFrom(proxy.port, HOST, {
      method: 'PUT',
      path: '/a%20b/ü?q=%2F&q=2'.replace('ü', '%C3%BC'),
      headers,
      body: 'grüße',
    });
    expect(status).toBe(200);
    expect(answered['x-upstream']).toBe('a');
    const seen = JSON.parse(body);
    expect(seen).toMatchObject({ method: 'PUT', url: '/a%20b/%C3%BC?q=%2F&q=2', body: 'grüße' });
    expect(seen.headers).toMatchObject({ ...headers, host: HOST });
  });

  test('tells the upstream its client, scheme, host and port, and the client cannot lie about them', async () => {
    await using upstream = await startUpstream(echo('a'));
    await using proxy = await startTestProxy();
    proxy.route(HOST, [upstream]);
    const lies = {
      'x-forwarded-for': '6.6.6.6',
      'X-Forwarded-Proto': 'https',
      'x-forwarded-host': 'evil.example',
      'x-forwarded-prefix': '/evil',
      forwarded: 'for=6.6.6.6',
      'x-real-ip': '6.6.6.6',
    };
    const { body } = await fetchFrom(proxy.port, HOST, { headers: lies });
    const { headers } = JSON.parse(body);
    expect(headers).toMatchObject({
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'http',
      'x-forwarded-host': HOST,
      'x-forwarded-port': String(proxy.port),
    });
    expect(Object.keys(headers)).not.toContain('forwarded');
    expect(Object.keys(headers)).not.toContain('x-real-ip');
    expect(Object.keys(headers)).not.toContain('x-forwarded-prefix');
  });

  test('loses the headers of its connection in both directions, those that Connection names too', async () => {
    await using upstream = await startUpstream((incoming, response) => {
      const headers = {
        connection: 'keep-alive, x-hop',
        'x-hop': 'secret',
        'keep-alive': 'timeout=99',
        'x-end': 'kept',
      };
      response.writeHead(200, headers).end(JSON.stringify(incoming.headers));
    });
    await using proxy = await startTestProxy();
    proxy.route(HOST, [upstream]);
    const headers = {
      connection: 'keep-alive, x-mine',
      'x-mine': '1',
      te: 'trailers',
      'proxy-authorization': 'Basic x',
    };
    const { headers: answered, body } = await fetchFrom(proxy.port, HOST, { headers });
    expect(answered).not.toHaveProperty('x-hop');
    expect(answered['keep-alive']).not.toContain('99');
    expect(answered['x-end']).toBe('kept');
    for (const name of ['x-mine', 'te', 'proxy-authorization']) expect(JSON.parse(body)).not.toHaveProperty(name);
  });

  test.each([`${HOST}:8080`, HOST.toUpperCase(), `${HOST}.`])('finds its host as %s', async (host) => {
    await using upstream = await startUpstream(echo('a'));
    await using proxy = await startTestProxy();
    proxy.route(HOST, [upstream]);
    const { status, body } = await fetchFrom(proxy.port, host);
    expect(status).toBe(200);
    expect(JSON.parse(body).headers.host).toBe(host);
  });

  test('repeated headers arrive each, in both directions', async () => {
    await using upstream = await startUpstream((incoming, response) => {
      response.writeHead(200, { 'set-cookie': ['a=1', 'b=2'] }).end(incoming.headers['x-list']);
    });
    await using proxy = await startTestProxy();
    proxy.route(HOST, [upstream]);
    const { headers, body } = await fetchFrom(proxy.port, HOST, { headers: { 'x-list': ['1', '2'] as never } });
    expect(headers['set-cookie']).toEqual(['a=1', 'b=2']);
    expect(body).toBe('1, 2');
  });

  test('that is not a path is refused', async () => {
    await using proxy = await startTestProxy();
    const { status, body } = await fetchFrom(proxy.port, HOST, { path: 'http://elsewhere.example/' });
    expect(status).toBe(400);
    expect(body).toContain('not a forward proxy');
  });

  test('with two lengths (smuggling) is refused', async () => {
    await using upstream = await startUpstream(echo('a'));
    await using proxy = await startTestProxy();
    proxy.route(HOST, [upstream]);
    const socket = connect(proxy.port, '127.0.0.1');
    socket.end(
      `POST / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET`,
    );
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 400 /);
    expect(upstream.connections).toBe(0);
  });

  test('with Expect: 100-continue is let in and answered', async () => {
    await using upstream = await startUpstream(echo('a'));
    await using proxy = await startTestProxy();
    proxy.route(HOST, [upstream]);
    const headers = { host: HOST, expect: '100-continue' };
    const sent = request({ port: proxy.port, host: '127.0.0.1', method: 'POST', agent: false, headers });
    sent.flushHeaders();
    await once(sent, 'continue');
    sent.end('body');
    const [response] = await once(sent, 'response');
    expect(JSON.parse(await text(response))).toMatchObject({ body: 'body' });
  });

  test('that offers h2c is answered as if it had not', async () => {
    await using upstream = await startUpstream(echo('a'));
    await using proxy = await startTestProxy();
    proxy.route(HOST, [upstream]);
    const headers = { connection: 'Upgrade, HTTP2-Settings', upgrade: 'h2c', 'http2-settings': 'AAMAAABk' };
    const { status, body } = await fetchFrom(proxy.port, HOST, { headers });
    expect(status).toBe(200);
    expect(JSON.parse(body).headers).not.toHaveProperty('upgrade');
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
    await using proxy = await startTestProxy();
    proxy.route(HOST, [upstream]);
    const answer = await fetchFrom(proxy.port, HOST, { method });
    expect(answer).toMatchObject({ status, body: '' });
    expect(answer.headers).toHaveProperty(header);
  });
});

describe('streaming', () => {
  test('an answer arrives piece by piece, its head before the first of them', async () => {
    const { promise: go, resolve } = Promise.withResolvers<void>();
    await using upstream = await startUpstream((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
      void go.then(() => response.write('data: 1\n\n'));
    });
    await using proxy = await startTestProxy();
    proxy.route(HOST, [upstream]);
    const response = await open(proxy.port, HOST);
    expect(response.headers['content-type']).toBe('text/event-stream');
    resolve();
    const [piece] = await once(response, 'data');
    expect(String(piece)).toBe('data: 1\n\n');
    response.destroy();
  });

  test('a large body passes both ways unchanged', async () => {
    await using upstream = await startUpstream((incoming, response) => void incoming.pipe(response));
    await using proxy = await startTestProxy();
    proxy.route(HOST, [upstream]);
    const body = '0123456789abcdef'.repeat(1 << 18);
    const answer = await fetchFrom(proxy.port, HOST, { method: 'POST', body });
    expect(answer.body.length).toBe(body.length);
    expect(answer.body === body).toBe(true);
  });

  test('a client that goes away ends the request at the upstream', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    await using upstream = await startUpstream((incoming, response) => {
      response.write('some');
      incoming.socket.on('close', () => resolve());
    });
    await using proxy = await startTestProxy();
    proxy.route(HOST, [upstream]);
    const response = await open(proxy.port, HOST);
    response.destroy();
    await promise;
    await proxy.upstreams.drained([upstream], 5000);
    expect(proxy.upstreams.underWay()).toBe(0);
  });

  test('an upstream that dies in the middle of an answer leaves the client with an error, not with a short answer', async () => {
    await using upstream = await startUpstream((incoming, response) => {
      response.writeHead(200, { 'transfer-encoding': 'chunked' }).write('half', () => incoming.socket.destroy());
    });
    await using proxy = await startTestProxy();
    proxy.route(HOST, [upstream]);
    await expect(fetchFrom(proxy.port, HOST)).rejects.toThrow(/aborted|hang up|reset/i);
  });
});

describe('connections', () => {
  test('to the upstream are kept and used again', async () => {
    await using upstream = await startUpstream(echo('a'));
    await using proxy = await startTestProxy();
    proxy.route(HOST, [upstream]);
    for (let n = 0; n < 20; n++) expect((await fetchFrom(proxy.port, HOST)).status).toBe(200);
    expect(upstream.connections).toBe(1);
  });

  test('of the client are kept, and closed when it asks for that', async () => {
    await using upstream = await startUpstream(echo('a'));
    await using proxy = await startTestProxy();
    proxy.route(HOST, [upstream]);
    const socket = connect(proxy.port, '127.0.0.1');
    socket.write(`GET /1 HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
    await once(socket, 'data');
    socket.write(`GET /2 HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n\r\n`);
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 200 OK[^]*connection: close/i);
  });

  test('to what no route names any more are closed', async () => {
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
});

describe('several upstreams', () => {
  test('take the requests in turn', async () => {
    await using a = await startUpstream(echo('a'));
    await using b = await startUpstream(echo('b'));
    await using proxy = await startTestProxy();
    proxy.route(HOST, [a, b]);
    const names: string[] = [];
    for (let n = 0; n < 4; n++) names.push(JSON.parse((await fetchFrom(proxy.port, HOST)).body).name);
    expect(names).toEqual(['a', 'b', 'a', 'b']);
  });

  test('one that takes no connections is passed over, and the body arrives whole at another', async () => {
    await using living = await startUpstream(echo('living'));
    await using proxy = await startTestProxy();
    proxy.route(HOST, [await deadUpstream(), living, await deadUpstream()]);
    for (let n = 0; n < 6; n++) {
      const answer = await fetchFrom(proxy.port, HOST, { method: 'POST', body: `body ${n}` });
      expect(JSON.parse(answer.body)).toMatchObject({ name: 'living', body: `body ${n}` });
    }
  });

  test('a POST that was sent is never sent to another one', async () => {
    let seen = 0;
    const drop = (incoming: Parameters<ReturnType<typeof echo>>[0]) => {
      seen++;
      incoming.socket.destroy();
    };
    await using a = await startUpstream(drop);
    await using b = await startUpstream(drop);
    await using proxy = await startTestProxy();
    proxy.route(HOST, [a, b]);
    const answer = await fetchFrom(proxy.port, HOST, { method: 'POST', body: 'pay' });
    expect(answer).toMatchObject({ status: 502, body: expect.stringContaining('closed the connection') });
    expect(seen).toBe(1);
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
});

describe('what the proxy answers itself', () => {
  test('404 for an unknown host, as page, JSON or text, whatever the client asks for', async () => {
    await using proxy = await startTestProxy();
    const ask = (accept: string) => fetchFrom(proxy.port, 'un<known.localhost', { headers: { accept } });
    const page = await ask('text/html,*/*');
    expect(page).toMatchObject({ status: 404, headers: { 'content-type': 'text/html; charset=utf-8' } });
    expect(page.body).toContain('There is no service at un&#60;known.localhost.');
    const message = 'There is no service at un<known.localhost.';
    expect(JSON.parse((await ask('application/json')).body)).toEqual({ status: 404, error: 'Not Found', message });
    expect((await ask('*/*')).body).toBe(`${message}\n`);
  });

  test('503 for a service that has no instances', async () => {
    await using proxy = await startTestProxy();
    proxy.route(HOST, []);
    expect(await fetchFrom(proxy.port, HOST)).toMatchObject({
      status: 503,
      headers: { 'retry-after': '1' },
      body: `The service at ${HOST} is not running.\n`,
    });
  });

  test('502 when no instance takes connections', async () => {
    await using proxy = await startTestProxy();
    proxy.route(HOST, [await deadUpstream(), await deadUpstream()]);
    const answer = await fetchFrom(proxy.port, HOST, { method: 'POST', body: 'x'.repeat(100_000) });
    expect(answer).toMatchObject({ status: 502, body: `The service at ${HOST} takes no connections.\n` });
  });

  test('504 when the upstream lets wait too long', async () => {
    await using upstream = await startUpstream(() => undefined);
    await using proxy = await startTestProxy({ answerMs: 500 });
    proxy.route(HOST, [upstream]);
    expect(await fetchFrom(proxy.port, HOST)).toMatchObject({ status: 504, body: expect.stringContaining('in time') });
    expect(proxy.upstreams.underWay()).toBe(0);
  });
});

test('drained of an address without a port waits for requests to all of its ports', async () => {
  const { promise: go, resolve } = Promise.withResolvers<void>();
  await using upstream = await startUpstream((_request, response) => void go.then(() => response.end()));
  await using proxy = await startTestProxy();
  proxy.route(HOST, [upstream]);
  const answer = fetchFrom(proxy.port, HOST);
  while (proxy.upstreams.underWay() === 0) await new Promise((next) => setImmediate(next));
  let drained = false;
  const waiting = proxy.upstreams.drained([{ address: '127.0.0.1', port: 0 }], 10_000).then(() => (drained = true));
  await proxy.upstreams.drained([{ address: '127.0.0.10', port: 0 }], 10_000);
  await new Promise((next) => setTimeout(next, 30));
  expect(drained).toBe(false);
  resolve();
  await waiting;
  expect((await answer).status).toBe(200);
});
