import { once } from 'node:events';
import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { data, frame, headers, rawHttp2Upstream } from '#runtimes/proxy/contract/http2-frames.ts';
import type { ProxyContract, ProxyHouse } from '#runtimes/proxy/contract/setup.ts';
import { rawUpstream, startUpstream } from '#runtimes/proxy/contract/upstreams.ts';
import { call, openHttp2 } from '#runtimes/proxy/contract/visitors.ts';
import { Witness } from '#runtimes/proxy/contract/witness.ts';

const OK = 'HTTP/1.1 200 OK\r\n';

/** Answers that cannot be passed on: the visitor gets 502, or its connection ends. */
const BAD_ANSWERS: Record<string, (socket: Socket) => void> = {
  garbage: (socket) => socket.write('\0\x01\x02 what?\r\n\r\n'),
  'nothing at all': (socket) => socket.end(),
  'a reset': (socket) => socket.resetAndDestroy(),
  'no status': (socket) => socket.write('HTTP/1.1 abc OK\r\n\r\n'),
  'two lengths': (socket) => socket.write(`${OK}Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd`),
  'a length and chunks': (socket) =>
    socket.write(`${OK}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`),
  'a negative length': (socket) => socket.write(`${OK}Content-Length: -3\r\n\r\nabc`),
  'a space in a header name': (socket) => socket.write(`${OK}X : 1\r\nContent-Length: 0\r\n\r\n`),
  'a NUL in a value': (socket) => socket.write(`${OK}X-A: 1\0\r\nContent-Length: 0\r\n\r\n`),
  'another protocol, unasked': (socket) =>
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nabc'),
  'half a head': (socket) => socket.end(`${OK}Content-Le`),
  'a head of 2 MiB': (socket) => socket.write(`${OK}X-A: ${'a'.repeat(2 << 20)}\r\n\r\n`),
  'a head without end': (socket) => {
    const more = () =>
      void (socket.destroyed || socket.write(`X-A: ${'a'.repeat(4_000)}\r\n`, () => setImmediate(more)));
    socket.write(OK);
    more();
  },
};

/** Entries of `BAD_ANSWERS` that a lenient proxy reads in one certain way. */
const LENIENT = ['a length and chunks', 'a space in a header name', 'a NUL in a value', 'another protocol, unasked'];

/** Answers that begin well and end badly: the visitor must not consider them complete. */
const CUT_ANSWERS: Record<string, (socket: Socket) => void> = {
  'fewer bytes than announced': (socket) => socket.end(`${OK}Content-Length: 100\r\n\r\nabc`),
  'chunks without an end': (socket) => socket.end(`${OK}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n`),
  'a chunk size that is no number': (socket) =>
    socket.write(`${OK}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nxyz\r\n\r\n`),
  'a reset in the middle': (socket) =>
    socket.write(`${OK}Content-Length: 100\r\n\r\nabc`, () => setTimeout(() => socket.resetAndDestroy(), 50)),
};

/** Entries of `CUT_ANSWERS` whose length is not known beforehand. */
const IN_CHUNKS = ['chunks without an end', 'a chunk size that is no number'];

/** Answers that are strange and complete: the visitor gets them, or 502. */
const STRANGE_ANSWERS: Record<string, (socket: Socket) => void> = {
  'headers of another protocol': (socket) =>
    socket.write(`${OK}HTTP2-Settings: x\r\nUpgrade: h2c\r\nTE: gzip\r\nContent-Length: 2\r\n\r\nok`),
  'Connection that names Content-Length': (socket) =>
    socket.write(`${OK}Connection: keep-alive, content-length\r\nContent-Length: 2\r\n\r\nok`),
  'trailers that frame': (socket) =>
    socket.write(
      `${OK}Transfer-Encoding: chunked\r\nTrailer: X\r\n\r\n2\r\nok\r\n0\r\nContent-Length: 9\r\nHttp2-Settings: x\r\nConnection: x\r\n\r\n`,
    ),
  'a thousand interim answers': (socket) =>
    socket.write(`${'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'.repeat(1000)}${OK}Content-Length: 2\r\n\r\nok`),
  'a status nobody knows': (socket) => socket.write('HTTP/1.1 799 Strange\r\nContent-Length: 2\r\n\r\nok'),
  'bytes beyond ASCII': (socket) =>
    socket.write(Buffer.from('HTTP/1.1 200 \xe4\xf6\r\nX-A: \xff\xfe\r\nContent-Length: 2\r\n\r\nok', 'latin1')),
  'more than was announced': (socket) =>
    socket.write(`${OK}Content-Length: 2\r\n\r\nok${OK}Content-Length: 8\r\n\r\nsmuggled`),
  'an encoding that is not chunked': (socket) => socket.end(`${OK}Transfer-Encoding: gzip\r\n\r\nok`),
  'a header name of every kind': (socket) =>
    socket.write(`${OK}__proto__: x\r\nconstructor: x\r\n!#$%&'*+-.^_\`|~: x\r\nContent-Length: 2\r\n\r\nok`),
};

/** Fields of gRPC answers that no HTTP/2 server may send (RFC 9113 §8.2.2), and others that are out of place. */
const FORBIDDEN: [string, string][] = [
  ['http2-settings', 'x'],
  ['connection', 'close'],
  ['keep-alive', 'timeout=5'],
  ['proxy-connection', 'x'],
  ['transfer-encoding', 'chunked'],
  ['upgrade', 'h2c'],
  ['te', 'gzip'],
  ['content-length', '9'],
  [':path', '/x'],
  [':status', '200'],
  ['Upper-Case', 'x'],
  ['__proto__', 'x'],
  ['x y', 'x'],
  ['', 'x'],
];

const HEAD: [string, string][] = [
  [':status', '200'],
  ['content-type', 'application/grpc'],
];
const END: [string, string][] = [['grpc-status', '0']];

/** Answers of a gRPC service, as frames on the stream. */
const BAD_CALLS: Record<string, (stream: number, socket: Socket) => Buffer> = {
  ...Object.fromEntries(
    FORBIDDEN.flatMap(([name, value]) => [
      [
        `${name || 'an empty name'} in the head`,
        (stream: number) => headers(stream, [...HEAD, [name, value], ...END], true),
      ],
      [
        `${name || 'an empty name'} in the trailers`,
        (stream: number) =>
          Buffer.concat([headers(stream, HEAD), data(stream, 'x'), headers(stream, [...END, [name, value]], true)]),
      ],
    ]),
  ),
  'no status': (stream) => headers(stream, END, true),
  'status 101': (stream) => headers(stream, [[':status', '101']], true),
  'status of no HTTP': (stream) => headers(stream, [[':status', '9']], true),
  'data before the head': (stream) => data(stream, 'x', true),
  'a head without end': (stream) => frame(1, 0, stream, '\x88'),
  'no trailers': (stream) => Buffer.concat([headers(stream, HEAD), data(stream, 'x', true)]),
  'a reset': (stream) => frame(3, 0, stream, '\0\0\0\x02'),
  'a reset after the head': (stream) => Buffer.concat([headers(stream, HEAD), frame(3, 0, stream, '\0\0\0\x02')]),
  'a goaway': (stream) => Buffer.concat([frame(7, 0, 0, '\0\0\0\0\0\0\0\x01'), headers(stream, HEAD)]),
  'a push': (stream) => frame(5, 4, stream, '\0\0\0\x02\x82'),
  'frames of an unknown stream': (stream) => Buffer.concat([headers(stream + 100, HEAD), data(stream + 100, 'x')]),
  garbage: () => Buffer.from('garbage that is no frame at all, longer than a head of one'),
  'an answer of HTTP/1.1': () => Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n'),
  'compression that does not decompress': (stream) => frame(1, 5, stream, '\xff\xff\xff\xff\xff\xff\xff'),
  'a frame of 16 MiB': (stream) => Buffer.concat([Buffer.from([0xff, 0xff, 0xff, 0, 0, 0, 0, 0, stream])]),
  'two heads': (stream) => Buffer.concat([headers(stream, HEAD), headers(stream, HEAD), headers(stream, END, true)]),
  'the end of the connection': (_stream, socket) => {
    setImmediate(() => socket.resetAndDestroy());
    return Buffer.alloc(0);
  },
};

/** Waits for the end of a call, whichever way the proxy ends it. */
async function endOfCall(proxy: ProxyHouse, host: string, timeoutMs = 10_000): Promise<void> {
  await using session = openHttp2(proxy.port);
  const stream = call(session, host);
  stream.resume().end('question');
  // An error is an end, too.
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, timeoutMs);
    const end = () => {
      clearTimeout(timer);
      resolve();
    };
    stream.once('close', end);
    session.once('close', end);
  });
}

/** Returns the outcome of a request whose answer is bad: its status, or `cut` if the connection ended. */
const outcome = (proxy: ProxyHouse, host: string, method = 'GET'): Promise<string> =>
  proxy.fetch(host, { method, signal: AbortSignal.timeout(10_000) }).then(
    ({ status, body }) => `${status} ${body.slice(0, 100)}`,
    (error: Error) => (error.name === 'AbortError' ? 'nothing for 10 s' : 'cut'),
  );

/** Tests of workloads whose answers try to harm the proxy or other workloads. */
export function describeHostileUpstreams({ shared, gives }: ProxyContract): void {
  test.each(Object.keys(BAD_ANSWERS).filter((name) => !LENIENT.includes(name) || gives('strictAnswers')))(
    'an answer that cannot be passed on is told as 502 or cut: %s',
    async (name) => {
      const proxy = shared();
      await using witness = await Witness.open(proxy);
      await using upstream = await rawUpstream((socket) => BAD_ANSWERS[name]!(socket));
      const host = await proxy.routed([upstream]);
      const pid = await proxy.subject.pid();
      for (const method of ['GET', 'POST']) expect(await outcome(proxy, host, method)).toMatch(/^(502 |cut)/);
      await witness.ask();
      expect(await proxy.subject.pid()).toBe(pid);
      expect(await proxy.subject.faults()).toEqual([]);
      // The proxy reads nothing more from the upstream: its connections close.
      await expect.poll(() => upstream.connections.filter(({ socket }) => !socket.destroyed)).toEqual([]);
    },
  );

  test.each(Object.keys(CUT_ANSWERS).filter((name) => !IN_CHUNKS.includes(name) || gives('cutChunks')))(
    'an answer that breaks off is not taken for a whole one: %s',
    async (name) => {
      const proxy = shared();
      await using witness = await Witness.open(proxy);
      await using upstream = await rawUpstream((socket) => CUT_ANSWERS[name]!(socket));
      const host = await proxy.routed([upstream]);
      expect(await outcome(proxy, host)).toBe('cut');
      await witness.ask();
      expect(await proxy.subject.faults()).toEqual([]);
    },
  );

  test.each(Object.keys(STRANGE_ANSWERS))('a strange answer harms nobody: %s', async (name) => {
    const proxy = shared();
    await using witness = await Witness.open(proxy);
    await using upstream = await rawUpstream((socket) => STRANGE_ANSWERS[name]!(socket));
    const host = await proxy.routed([upstream]);
    const pid = await proxy.subject.pid();
    for (let n = 0; n < 3; n++) expect(await outcome(proxy, host)).toMatch(/^(200 ok$|799 ok$|502 |cut)/);
    await witness.ask();
    expect(await proxy.subject.pid()).toBe(pid);
    expect(await proxy.subject.faults()).toEqual([]);
  });

  test('an answer in place of a websocket that is no HTTP is told as 502 or cut', async () => {
    const proxy = shared();
    await using upstream = await rawUpstream((socket) => void socket.write('garbage\r\n\r\n'));
    const host = await proxy.routed([upstream]);
    const upgrade = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-key': 'x' };
    const answer = await proxy.fetch(host, { headers: upgrade }).then(
      ({ status }) => status,
      () => 'cut',
    );
    expect([502, 'cut']).toContain(answer);
    expect(await proxy.subject.faults()).toEqual([]);
  });

  test.each(Object.keys(BAD_CALLS))('a gRPC service that answers with %s harms nobody', async (name) => {
    const proxy = shared();
    await using witness = await Witness.open(proxy);
    await using upstream = await rawHttp2Upstream(BAD_CALLS[name]!);
    const host = await proxy.routed([upstream], 'GRPC');
    const pid = await proxy.subject.pid();
    await endOfCall(proxy, host, 1_000);
    await witness.ask();
    expect(await proxy.subject.pid()).toBe(pid);
    expect(await proxy.subject.faults()).toEqual([]);
  });

  test('a gRPC service that does not speak HTTP/2 is told as unavailable', async () => {
    const proxy = shared();
    await using upstream = await startUpstream((_request, response) => response.end('plain'));
    const host = await proxy.routed([upstream], 'GRPC');
    await using session = openHttp2(proxy.port);
    const stream = call(session, host);
    stream.end();
    const [answered] = (await once(stream, 'response')) as [Record<string, unknown>];
    expect(['14', 502, 503]).toContain(answered['grpc-status'] ?? answered[':status']);
    expect(await proxy.subject.faults()).toEqual([]);
  });
}
