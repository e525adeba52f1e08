import fc from 'fast-check';
import { expect, test } from 'vitest';
import { AnswerReader } from '#runtimes/proxy/answer-reader.ts';

/** What a reader makes of answers that come in these packets; `methods` are those of the requests, one after the other. */
function read(packets: Buffer[], methods = ['GET'], closes = false) {
  const seen: { status: number; body: string; trailers: string | null; kept: boolean }[] = [];
  const left = [...methods];
  const reader = new AnswerReader({
    onHead: ({ status, kept }) => void seen.push({ status, body: '', trailers: null, kept }),
    onBody: (bytes) => void (seen.at(-1)!.body += bytes.toString('latin1')),
    onEnd: (trailers) => void (seen.at(-1)!.trailers = trailers),
  });
  for (const packet of packets) {
    if (left.length > 0 && (seen.length === 0 || seen.at(-1)!.trailers !== null)) reader.expect(left.shift()!);
    const taken = reader.push(packet);
    if (taken < packet.length) return { seen, rest: packet.subarray(taken).toString() };
  }
  return { seen, complete: closes ? reader.close() : undefined };
}

const packet = (text: string) => Buffer.from(text, 'latin1');
const one = (text: string, method = 'GET') => read([packet(text)], [method]).seen;

/** Cuts a text into packets in all the ways there are. */
const cut = (text: string, cuts: number[]): Buffer[] => {
  const places = [0, ...cuts.map((at) => at % (text.length + 1)).sort((a, b) => a - b), text.length];
  return places
    .slice(1)
    .map((end, index) => packet(text.slice(places[index], end)))
    .filter((part) => part.length > 0);
};

test('an answer is the same however it is cut into packets', () => {
  const part = fc.string({ minLength: 1, maxLength: 40 });
  const answers = fc.oneof(
    fc.string({ maxLength: 100 }).map((body) => ({
      text: `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      body,
      trailers: '',
    })),
    fc
      .tuple(fc.array(part), fc.constantFrom('', 'X-A: 1\r\n', 'X-A: 1\r\nX-B:\r\n'), fc.constantFrom('', ';a=b', ' '))
      .map(([parts, trailers, extension]) => {
        const chunks = parts.map((text) => `${text.length.toString(16)}${extension}\r\n${text}\r\n`).join('');
        return {
          text: `HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${chunks}0\r\n${trailers}\r\n`,
          body: parts.join(''),
          trailers,
        };
      }),
  );
  fc.assert(
    fc.property(answers, fc.array(fc.nat(400), { maxLength: 12 }), ({ text, body, trailers }, cuts) => {
      expect(read(cut(text, cuts)).seen).toEqual([{ status: 200, body, trailers, kept: true }]);
      expect(read([...text].map(packet)).seen).toEqual([{ status: 200, body, trailers, kept: true }]);
    }),
    { numRuns: 300 },
  );
});

test('an answer without a length ends with its connection, and the connection is not kept', () => {
  const { seen, complete } = read([packet('HTTP/1.1 200 OK\r\n\r\nsome'), packet('thing')], ['GET'], true);
  expect(seen).toEqual([{ status: 200, body: 'something', trailers: '', kept: false }]);
  expect(complete).toBe(true);
});

test('an answer that ends too early is not complete', () => {
  expect(read([packet('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfour')], ['GET'], true).complete).toBe(false);
  expect(
    read([packet('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n')], ['GET'], true).complete,
  ).toBe(false);
});

test.each([
  ['HEAD', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n'],
  ['GET', 'HTTP/1.1 204 No Content\r\n\r\n'],
  ['GET', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n'],
  ['GET', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'],
])('an answer to %s of %j has no body, and the connection is kept', (method, text) => {
  expect(one(text, method)).toEqual([expect.objectContaining({ body: '', trailers: '', kept: true })]);
});

test('after a change of the protocol nothing more is read', () => {
  expect(read([packet('HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\nhello')])).toMatchObject({ rest: 'hello' });
});

test.each([
  [
    'another answer after the one that was asked for',
    'HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\n\r\n',
  ],
  ['a longer body than it says', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab'],
  ['a body where there is none', 'HTTP/1.1 304 Not Modified\r\n\r\nab'],
  ['the size of a chunk that is no number', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n'],
  ['no size of a chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n'],
  ['a size of a chunk beyond all measure', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffff\r\n'],
  ['a chunk that is longer than it says', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n'],
  ['a chunk that ends in LF alone', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\n0\r\n\r\n'],
  ['a head without an end', `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(70_000)}`],
])('%s is refused', (_what, text) => {
  expect(() => one(text)).toThrow(/more came|is not a number|is longer|too long|not one of HTTP/);
});
