import { createServer } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { duplexPair } from 'node:stream';
import { text } from 'node:stream/consumers';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { MalformedAnswer, readPlainRequest, readResponseHead, readTrailers } from '#runtimes/proxy/heads.ts';

const HOST = 'Host: a.localhost\r\n';
const request = (fields: string, line = 'GET /a?b=1 HTTP/1.1') => `${line}\r\n${fields}\r\n`;

describe('the head of a request', () => {
  test('is passed on as it was written, without what belongs to its connection or only the proxy may say', () => {
    const kept = 'X-Own:  two  blanks\r\nACCEPT: */*\r\nCookie: a=1\r\ncookie: b=2\r\nContent-Length: 3\r\n';
    const dropped =
      'Connection: Keep-Alive\r\nkeep-alive: 3\r\nTE: trailers\r\nX-Forwarded-For: 6.6.6.6\r\nForwarded: for=6\r\n' +
      'x-real-ip: 6\r\nProxy-Authorization: x\r\nProxy-Connection: x\r\nX-FORWARDED-Anything: x\r\n';
    expect(readPlainRequest(request(HOST + dropped + kept, 'PUT /a?b=1 HTTP/1.1'))).toEqual({
      method: 'PUT',
      path: '/a?b=1',
      host: 'a.localhost',
      close: false,
      length: 3,
      lines: HOST + kept,
    });
    expect(readPlainRequest(request(`${HOST}Connection: close\r\n`))).toMatchObject({ close: true, length: 0 });
  });

  test.each([
    ['no host', ''],
    ['two hosts', HOST + HOST],
    ['an empty host', 'Host: \r\n'],
    ['a chunked body', `${HOST}Transfer-Encoding: chunked\r\n`],
    ['an encoding spelled otherwise', `${HOST}transfer-encoding: identity\r\n`],
    ['two lengths', `${HOST}Content-Length: 1\r\nContent-Length: 1\r\n`],
    ['two lengths in one', `${HOST}Content-Length: 1, 1\r\n`],
    ['a signed length', `${HOST}Content-Length: +1\r\n`],
    ['a length in hexadecimal', `${HOST}Content-Length: 0x1\r\n`],
    ['an empty length', `${HOST}Content-Length:\r\n`],
    ['an expectation', `${HOST}Expect: 100-continue\r\n`],
    ['an upgrade', `${HOST}Connection: Upgrade\r\nUpgrade: websocket\r\n`],
    ['a connection that names a header', `${HOST}Connection: keep-alive, x-hop\r\n`],
    ['a blank before the colon', `${HOST}X-A : 1\r\n`],
    ['a folded line', `${HOST}X-A: 1\r\n Content-Length: 5\r\n`],
    ['a line that ends in LF alone', `${HOST}X-A: 1\nContent-Length: 5\r\n`],
    ['a CR in a value', `${HOST}X-A: 1\rContent-Length: 5\r\n`],
    ['a NUL', `${HOST}X-A: \0\r\n`],
    ['a header without a name', `${HOST}: 1\r\n`],
    ['a header without a colon', `${HOST}X-A\r\n`],
  ])('with %s is left to the parser of Node', (_what, fields) => {
    expect(readPlainRequest(request(fields))).toBeNull();
  });

  test.each([
    'get / HTTP/1.1',
    'GET / HTTP/1.0',
    'GET / HTTP/2.0',
    'GET  / HTTP/1.1',
    'GET / HTTP/1.1 ',
    'GET /a b HTTP/1.1',
    'GET http://a.localhost/ HTTP/1.1',
    'GET * HTTP/1.1',
    'CONNECT a:1 HTTP/1.1',
    'TRACE / HTTP/1.1',
    'GET /\u00e9 HTTP/1.1',
    'GET /',
  ])('with the line %j is left to the parser of Node', (line) => {
    expect(readPlainRequest(request(HOST, line))).toBeNull();
  });

  test('is never read otherwise than Node reads it, whatever comes', async () => {
    const piece = fc.oneof(
      fc.constantFrom(
        HOST,
        'X: 1\r\n',
        'x-a:\t1 \r\n',
        'Content-Length: 0\r\n',
        'Content-Length: 4\r\n',
        'content-length : 4\r\n',
        'Transfer-Encoding: chunked\r\n',
        'Transfer-Encoding:\tchunked\r\n',
        'Connection: close\r\n',
        '\r\n',
        '\n',
        '\r',
        ' ',
        ':',
        'Connection: content-length\r\n',
        'TE: x\r\n',
        'Cookie: a\r\n',
      ),
      fc.string({ unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)), maxLength: 4 }),
    );
    const line = fc.constantFrom(
      'GET / HTTP/1.1\r\n',
      'POST /a HTTP/1.1\r\n',
      'HEAD /%20 HTTP/1.1\r\n',
      'GET /\t HTTP/1.1\r\n',
    );
    const heads = fc
      .tuple(line, fc.array(piece, { maxLength: 6 }))
      .map(([first, fields]) => `${first}${HOST}${fields.join('')}\r\n`);
    let read = 0;
    await fc.assert(
      fc.asyncProperty(heads, async (head) => {
        const plain = readPlainRequest(head);
        if (!plain || (plain.length > 0 && plain.length !== 4)) return;
        read++;
        const body = plain.length === 4 ? 'body' : '';
        const seen = await readByNode(`${head}${body}`);
        expect(seen).toMatchObject({ method: plain.method, url: plain.path, body });
        expect(seen.headers.host).toBe(plain.host);
        // What the upstream gets is one request as well, and says the same.
        const forwarded = await readByNode(`${plain.method} ${plain.path} HTTP/1.1\r\n${plain.lines}\r\n${body}`);
        expect(forwarded).toMatchObject({ method: plain.method, url: plain.path, body });
      }),
      { numRuns: 3000 },
    );
    expect(read).toBeGreaterThan(100);
  });
});

/** What Node's server makes of bytes that a client sent; throws when it refuses them or sees more than one request. */
async function readByNode(
  bytes: string,
): Promise<Pick<IncomingMessage, 'method' | 'url' | 'headers'> & { body: string }> {
  const [client, side] = duplexPair();
  const requests: { request: IncomingMessage; body: Promise<string> }[] = [];
  const server = createServer((incoming) => void requests.push({ request: incoming, body: text(incoming) }));
  server.emit('connection', side);
  client.end(Buffer.from(bytes, 'latin1'));
  const answered = await text(client);
  if (requests.length !== 1) throw new Error(`${requests.length} requests: ${answered}`);
  const { method, url, headers } = requests[0]!.request;
  return { method, url, headers, body: await requests[0]!.body };
}

const answer = (fields: string, line = 'HTTP/1.1 200 OK') => `${line}\r\n${fields}\r\n`;

describe('the head of a response', () => {
  test('is passed on without what belongs to its connection, headers that Connection names included', () => {
    const kept = 'Set-Cookie: a=1\r\nset-cookie: b=2\r\nContent-Length: 5\r\nDate: now\r\n';
    const dropped =
      'Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=9, max=3\r\nTrailer: x\r\nUpgrade: h2c\r\n';
    expect(readResponseHead(answer(dropped + kept))).toMatchObject({
      status: 200,
      reason: 'OK',
      lines: kept,
      hasDate: true,
      framing: { by: 'length', length: 5 },
      kept: true,
      keptMs: 9000,
    });
  });

  test.each([
    ['Transfer-Encoding: Chunked\r\n', 'HTTP/1.1 200 OK', { framing: { by: 'chunks' }, kept: true }],
    ['', 'HTTP/1.1 404', { status: 404, reason: '', framing: { by: 'close' } }],
    ['Connection: close\r\n', 'HTTP/1.1 200 ', { reason: '', kept: false }],
    ['Content-Length: 0\r\n', 'HTTP/1.0 200 OK', { kept: false }],
    ['Content-Length: 0\r\nConnection: keep-alive\r\n', 'HTTP/1.0 200 OK', { kept: true }],
  ])('%j after %j is framed as it says', (fields, line, expected) => {
    expect(readResponseHead(answer(fields, line))).toMatchObject(expected);
  });

  test.each([
    ['a length and chunks', 'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n'],
    ['two lengths', 'Content-Length: 5\r\nContent-Length: 5\r\n'],
    ['a length that is no number', 'Content-Length: 5a\r\n'],
    ['another encoding', 'Transfer-Encoding: gzip, chunked\r\n'],
    ['chunks twice', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n'],
    ['a folded line', 'X: 1\r\n 2\r\n'],
    ['a blank before the colon', 'Content-Length : 5\r\n'],
    ['a line that ends in LF alone', 'X: 1\nY: 2\r\n'],
  ])('with %s is refused', (_what, fields) => {
    expect(() => readResponseHead(answer(fields))).toThrow(MalformedAnswer);
  });

  test.each([
    'HTTP/1.1 99 x',
    'HTTP/1.1 2000 x',
    'HTTP/2 200 x',
    'HTTP/1.1  200 OK',
    'http/1.1 200 OK',
    'HTTP/1.1 200 \u0001',
  ])('with the line %j is refused', (line) =>
    expect(() => readResponseHead(answer('', line))).toThrow(MalformedAnswer),
  );
});

test('trailers that would change how a message is framed are left out', () => {
  expect(readTrailers('X-Sum: 1\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n')).toBe('X-Sum: 1\r\n');
  expect(() => readTrailers('nothing\r\n')).toThrow(MalformedAnswer);
});
