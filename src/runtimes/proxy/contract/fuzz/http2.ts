import { data, frame, headers } from '#runtimes/proxy/contract/http2-frames.ts';
import type { Random } from '#test/harness/random.ts';

const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';

/** Fields that a request to a path of HTTP/2 may not have, or that would change its framing in HTTP/1.1. */
const fieldsFor = (path: string): [string, string][] => [
  ['transfer-encoding', 'chunked'],
  ['content-length', '0'],
  ['content-length', '5'],
  ['connection', 'x-forwarded-for'],
  ['upgrade', 'h2c'],
  ['host', 'b.fuzz.localhost'],
  ['x-a', '1\r\nx-forwarded-for: 6.6.6.6'],
  ['x-a', '1\r\n\r\nGET / HTTP/1.1\r\nhost: b.fuzz.localhost\r\n\r\n'],
  ['x-a\r\nx-b', '1'],
  ['x-a', '1\0'],
  ['X-Upper', '1'],
  // Of the same exchange: where the first path is left out, this one is answered.
  [':path', `${path}second/`],
  [':authority', 'b.fuzz.localhost'],
  [':unknown', '1'],
  ['', '1'],
  ['te', 'gzip'],
  ['__proto__', '1'],
];

function request(random: Random, stream: number, hosts: readonly string[], path: string): Buffer {
  const fields: [string, string][] = [
    [':method', random.pick(['POST', 'POST', 'GET', 'CONNECT', 'HEAD', 'G T', ''])],
    [':scheme', 'http'],
    [':path', random.pick([path, path, path, '', '*', `${path} HTTP/1.1\r\nx: 1`])],
    [':authority', random.pick(hosts)],
    ['content-type', 'application/grpc'],
    ['x-forwarded-for', '6.6.6.6'],
  ];
  if (random.next() < 0.2) fields.splice(random.below(4), 1);
  if (random.next() < 0.5) fields.splice(random.below(fields.length + 1), 0, random.pick(fieldsFor(path)));
  return headers(stream, fields, random.next() < 0.5);
}

const u32 = (value: number): string => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes.toString('latin1');
};

function someFrame(random: Random, hosts: readonly string[], path: string): Buffer {
  const stream = random.pick([0, 1, 1, 3, 5, 2, 0x7fffffff]);
  const junk = Array.from({ length: random.below(40) }, () => String.fromCharCode(random.below(256))).join('');
  return random.pick<() => Buffer>([
    () => request(random, stream || 1, hosts, path),
    () => request(random, stream || 1, hosts, path),
    () => data(stream, 'GET / HTTP/1.1\r\n\r\n', random.next() < 0.5),
    () => data(stream, 'x'.repeat(16_000)),
    () => frame(1, random.below(256), stream, junk),
    () => frame(2, 0, stream, `${u32(stream)}\x10`),
    () => frame(3, 0, stream, u32(random.below(20))),
    () => frame(4, random.below(2), random.pick([0, stream]), junk),
    () =>
      frame(4, 0, 0, `\0\x04${u32(random.pick([0, 1, 0xffffffff]))}\0\x05${u32(random.pick([0, 16_384, 0xffffff]))}`),
    () => frame(5, 4, stream, junk),
    () => frame(6, 0, 0, 'abcdefgh'.slice(random.below(3))),
    () => frame(7, 0, 0, u32(0) + u32(random.below(20))),
    () => frame(8, 0, stream, u32(random.pick([0, 1, 0x7fffffff]))),
    () => frame(9, random.below(5), stream, junk),
    () => frame(random.below(256), random.below(256), stream, junk),
    () => Buffer.from(junk, 'latin1'),
    () => Buffer.concat(Array.from({ length: 100 }, (_, n) => frame(3, 0, 1 + 2 * n, u32(8)))),
    () => Buffer.concat(Array.from({ length: 100 }, () => frame(6, 0, 0, 'abcdefgh'))),
  ])();
}

/** Creates the bytes of an HTTP/2 connection of which some frames are valid. */
export function http2Garbage(random: Random, hosts: readonly string[], path: string): string {
  const preface = random.pick([PREFACE, PREFACE, PREFACE, PREFACE.slice(0, 20), 'PRI * HTTP/1.1\r\n\r\n']);
  const parts = random.next() < 0.9 ? [frame(4, 0, 0)] : [];
  if (random.next() < 0.7) parts.push(request(random, 1, hosts, path));
  for (let count = random.below(6); count > 0; count--) parts.push(someFrame(random, hosts, path));
  return preface + Buffer.concat(parts).toString('latin1');
}
