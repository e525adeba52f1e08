import type { Step } from '#runtimes/proxy/contract/fuzz/step.ts';
import type { Random } from '#test/harness/random.ts';

const STATUS_LINES = [
  'HTTP/1.1 200 OK',
  'HTTP/1.0 200 OK',
  'HTTP/1.1 204 No Content',
  'HTTP/1.1 304 Not Modified',
  'HTTP/1.1 205 Reset',
  'HTTP/1.1 500',
  'HTTP/1.1 799 Strange',
  'HTTP/1.1 101 Switching Protocols',
  'HTTP/1.1 100 Continue',
  'HTTP/1.1 199 Interim',
  'HTTP/1.1 099 Low',
  'HTTP/1.1 1000 High',
  'HTTP/1.1 abc OK',
  'HTTP/1.1  200 OK',
  'HTTP/1.1 200 O\0K',
  'HTTP/1.1 200 \xff\xfe',
  'HTTP/2.0 200 OK',
  'HTTP/9.9 200 OK',
  'HTTP/1.1',
  'ICY 200 OK',
  '200 OK',
  '',
];

const FIELDS = [
  'X-A: 1\0',
  'X-A: 1\rSet-Cookie: injected=1',
  'X-A: 1\nSet-Cookie: injected=1',
  'X-A : 1',
  ' X-A: 1',
  'X-A',
  ': 1',
  'X-\xff: \xff',
  `X-A: ${'a'.repeat(100_000)}`,
  'Connection: content-length, close',
  'Connection: upgrade\r\nUpgrade: websocket',
  'Keep-Alive: timeout=0',
  'Keep-Alive: timeout=99999999999',
  'Set-Cookie: a=1\r\nSet-Cookie: b=2',
  'Trailer: Content-Length',
  'Content-Encoding: gzip',
  'Transfer-Encoding: gzip',
  '__proto__: x\r\nconstructor: x',
  'Content-Type: \x7f',
  ...[200, 2_000].map((count) => Array.from({ length: count }, (_, n) => `X-${n}: 1`).join('\r\n')),
];

/** Returns the header lines that frame a body of the given length, right or wrong, and the sent body. */
function framed(random: Random, body: string): [string, string] {
  const size = body.length;
  const asChunk = `${size.toString(16)}\r\n${body}\r\n`;
  return random.pick<[string, string]>([
    [`Content-Length: ${size}`, body],
    [`Content-Length: ${size}`, body],
    [`Content-Length: ${size + 10}`, body],
    [`Content-Length: ${size - 3}`, body],
    [`Content-Length: ${size}\r\nContent-Length: ${size}`, body],
    [`Content-Length: ${size}\r\nContent-Length: ${size + 1}`, body],
    [`Content-Length: ${size}, ${size}`, body],
    [`Content-Length: -${size}`, body],
    [`Content-Length: +${size}`, body],
    ['Content-Length: 99999999999999999999', body],
    [`Content-Length: ${size}\r\nTransfer-Encoding: chunked`, `${asChunk}0\r\n\r\n`],
    ['Transfer-Encoding: chunked', `${asChunk}0\r\n\r\n`],
    ['Transfer-Encoding: chunked', asChunk],
    ['Transfer-Encoding: chunked', `${asChunk}xyz\r\n\r\n`],
    ['Transfer-Encoding: chunked', `${asChunk}0\r\nContent-Length: 3\r\nX\0: 1\r\n\r\n`],
    ['Transfer-Encoding: chunked', `${asChunk}0\r\n${'X: 1\r\n'.repeat(3_000)}\r\n`],
    ['Transfer-Encoding: chunked', `FFFFFFFFFFFFFFFF\r\n${body}`],
    ['Transfer-Encoding: chunked', `${size.toString(16)};${'a'.repeat(20_000)}\r\n${body}\r\n0\r\n\r\n`],
    ['Transfer-Encoding: gzip, chunked', `${asChunk}0\r\n\r\n`],
    ['Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked', `${asChunk}0\r\n\r\n`],
    ['X-No-Length: 1', body],
  ]);
}

const END: Step[][] = [[], [], [{ end: true }], [{ reset: true }]];

/** Creates the answer of a hostile upstream. The body contains `mark`, so that it is recognized wherever it arrives. */
export function hostileAnswer(random: Random, mark: string): Step[] {
  const fate = random.below(12);
  // Some never answer, end at once, or speak another protocol.
  if (fate === 0) return [];
  if (fate === 1) return random.pick<Step[]>([[{ end: true }], [{ reset: true }]]);
  if (fate === 2)
    return [
      { write: random.pick(['\0\x01\x02\r\n\r\n', mark, '\0\0\0\x04\0\0\0\0\0', '\r\n'.repeat(5_000)]) },
      { end: true },
    ];
  const interim = `HTTP/1.1 ${random.pick(['100 Continue', '102 Processing', '103 Early Hints', '150 X'])}\r\nX: 1\r\n\r\n`;
  const before = random.next() < 0.2 ? interim.repeat(random.pick([1, 5, 500])) : '';
  const status = random.next() < 0.6 ? STATUS_LINES[0]! : random.pick(STATUS_LINES);
  const fields = random.next() < 0.5 ? '' : `${random.pick(FIELDS)}\r\n`;
  const body = `${mark}${'b'.repeat(random.pick([0, 10, 70_000]))}`;
  const [frame, sent] = framed(random, body);
  const after = random.next() < 0.2 ? `HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nextra` : '';
  const text = `${before}${status}\r\n${fields}${frame}\r\n\r\n${sent}${after}`;
  if (random.next() < 0.3) return [{ write: text.slice(0, random.below(text.length)) }, ...random.pick(END)];
  if (random.next() < 0.3) {
    const cut = random.below(text.length);
    return [
      { write: text.slice(0, cut) },
      { pause: random.below(30) },
      { write: text.slice(cut) },
      ...random.pick(END),
    ];
  }
  return [{ write: text }, ...random.pick(END)];
}
