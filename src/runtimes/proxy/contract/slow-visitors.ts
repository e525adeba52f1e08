import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { openDescriptors, showsDescriptors, type ProxyContract } from '#runtimes/proxy/contract/setup.ts';
import { frame, headers } from '#runtimes/proxy/contract/http2-frames.ts';
import { echo, startGrpcUpstream, startUpstream } from '#runtimes/proxy/contract/upstreams.ts';
import { call, connectRaw, headersOf, openHttp2 } from '#runtimes/proxy/contract/visitors.ts';
import type { RawVisitor } from '#runtimes/proxy/contract/visitors.ts';
import { openFilesLimit } from '#runtimes/proxy/descriptors.ts';
import { Witness } from '#runtimes/proxy/contract/witness.ts';

const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
/** Empty SETTINGS frame. */
const SETTINGS = '\0\0\0\x04\0\0\0\0\0';
/** HEADERS frame that announces 64 bytes and does not end its head. */
const HALF_HEADERS = '\0\0\x40\x01\0\0\0\0\x01\x82';
/** PING frame. */
const PING = '\0\0\x08\x06\0\0\0\0\0abcdefgh';

/** Bytes that a visitor sends at first, and then repeatedly. */
const SLOW: Record<string, [string, string]> = {
  nothing: ['', ''],
  'half a head': ['GET / HT', ''],
  'a head byte by byte': ['GET / HTTP/1.1\r\nX-A: ', 'a'],
  'a head line by line': ['GET / HTTP/1.1\r\n', 'X-A: a\r\n'],
  'empty lines': ['\r\n', '\r\n'],
  'half of a preface of HTTP/2': ['PRI * HT', ''],
  'the beginning of a preface': ['P', ''],
  'a preface without settings': [PREFACE, ''],
  'settings of HTTP/2 and nothing else': [PREFACE + SETTINGS, ''],
  'half a head of HTTP/2': [PREFACE + SETTINGS + HALF_HEADERS, ''],
  'a head of HTTP/2 byte by byte': [PREFACE + SETTINGS + HALF_HEADERS, '\x82'],
  'pings of HTTP/2': [PREFACE + SETTINGS, PING],
};

/** Returns the head of a call that does not end with it. */
const openCall = (method: string, host: string): string =>
  headers(1, [
    [':method', method],
    [':scheme', 'http'],
    [':path', '/'],
    [':authority', host],
    ['content-type', 'application/grpc'],
  ]).toString('latin1');
/** GOAWAY frame. */
const GOODBYE = frame(7, 0, 0, '\0\0\0\0\0\0\0\0').toString('latin1');
/** Data of a call that never began, which breaks the protocol. */
const DATA_OF_NOTHING = frame(0, 0, 5, 'data').toString('latin1');

/** Bytes after the HTTP/2 preface that keep a connection with a call that never ends. */
const CALLS: Record<string, (host: string) => string> = {
  'a call that the visitor does not end': (host) => openCall('POST', host),
  'a HEAD that the visitor does not end': (host) => openCall('HEAD', host),
  'a call, and data of another that never began': (host) => openCall('POST', host) + DATA_OF_NOTHING,
  'a call, a goodbye, and data of another that never began': (host) =>
    openCall('HEAD', host) + GOODBYE + DATA_OF_NOTHING,
};

const TIMES = { headMs: 1_500, idleMs: 1_500 };
/** Milliseconds of delay allowed to the proxy's periodic checks. */
const GRACE_MS = 8_000;

async function keepSaying(visitor: RawVisitor, what: string): Promise<void> {
  while (!visitor.socket.destroyed) {
    if (what !== '') visitor.socket.write(what, 'latin1');
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Tests of slow visitors that hold resources which others need. */
export function describeSlowVisitors({ open, gives }: ProxyContract): void {
  test('a visitor that does not finish its head is shown out in time, on every protocol', async () => {
    await using proxy = await open({ limits: TIMES });
    await using witness = await Witness.open(proxy);
    const stayed = await Promise.all(
      Object.entries(SLOW).map(async ([name, [first, again]]) => {
        await using visitor = await connectRaw(proxy.port);
        visitor.socket.write(first, 'latin1');
        void keepSaying(visitor, again);
        return await visitor.closed(TIMES.headMs + TIMES.idleMs + GRACE_MS).then(
          () => null,
          () => name,
        );
      }),
    );
    expect(stayed.filter(Boolean)).toEqual([]);
    await witness.ask();
    expect(witness.foreign).toEqual([]);
  });

  test('a connection that rests after its answers is closed', async () => {
    await using proxy = await open({ limits: TIMES });
    await using witness = await Witness.open(proxy);
    await using visitor = await connectRaw(proxy.port);
    visitor.socket.write(`GET /honest-0 HTTP/1.1\r\nHost: ${witness.host}\r\n\r\n`);
    await visitor.until((said) => said.includes('/honest-0'));
    await visitor.closed(TIMES.idleMs + GRACE_MS);
  });

  test.skipIf(!showsDescriptors).each(Object.keys(CALLS))(
    '%s holds no connection: the visitor left, or the answer was complete',
    async (name) => {
      await using upstream = await startGrpcUpstream('a');
      await using proxy = await open({ limits: TIMES });
      // A host of gRPC makes every proxy take HTTP/2 without TLS.
      const host = await proxy.routed([upstream], 'GRPC');
      const before = openDescriptors(await proxy.subject.pid());
      const enter = async (to: string) => {
        const visitor = await connectRaw(proxy.port);
        visitor.socket.write(PREFACE + SETTINGS + CALLS[name]!(to), 'latin1');
        await visitor.quiet((said) => said.length > 60);
        return visitor;
      };
      const stayers = await Promise.all(Array.from({ length: 4 }, () => enter('nobody.example')));
      const leavers = await Promise.all([...Array.from({ length: 12 }, () => enter('nobody.example')), enter(host)]);
      for (const { socket } of leavers) socket.destroy();
      const patience = 2 * TIMES.idleMs + TIMES.headMs + GRACE_MS;
      for (const visitor of stayers) await visitor.closed(patience);
      await expect
        .poll(async () => openDescriptors(await proxy.subject.pid()), { timeout: patience })
        .toBeLessThan(before + leavers.length);
    },
  );

  if (gives('plainHttp2'))
    test('a connection of HTTP/2 that rests after its answers is closed', async () => {
      await using proxy = await open({ limits: TIMES });
      await using witness = await Witness.open(proxy);
      await using session = openHttp2(proxy.port);
      const stream = call(session, witness.host);
      stream.end();
      await headersOf(stream);
      stream.close();
      const started = performance.now();
      await new Promise((resolve) => session.once('close', resolve));
      expect(performance.now() - started).toBeLessThan(TIMES.idleMs + TIMES.headMs + GRACE_MS);
    });

  if (gives('stalls'))
    test('an upload that stops is ended, one that goes on is not', async () => {
      await using upstream = await startUpstream(echo('a'));
      await using proxy = await open({ limits: { stallMs: 1_500 } });
      const host = await proxy.routed([upstream]);
      const head = `POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 40\r\n\r\n`;
      await using stopped = await connectRaw(proxy.port);
      stopped.socket.write(`${head}some`);
      await using going = await connectRaw(proxy.port);
      going.socket.write(head);
      for (let n = 0; n < 40; n++) {
        going.socket.write('x');
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      expect(await going.until((said) => said.includes('"body"'))).toContain(`"body":"${'x'.repeat(40)}"`);
      expect(await stopped.closed(GRACE_MS)).not.toMatch(/^HTTP\/1\.1 200/);
    });

  if (gives('addressLimit'))
    test('connections from one address are limited, others are served on', async () => {
      await using proxy = await open({ limits: { connectionsPerAddress: 5 } });
      await using witness = await Witness.open(proxy);
      const held = await Promise.all(Array.from({ length: 12 }, () => connectRaw(proxy.port, '127.0.0.2')));
      const refused = held.slice(5);
      for (const visitor of refused) await visitor.closed();
      await witness.ask();
      expect(held.slice(0, 5).filter(({ socket }) => socket.destroyed)).toEqual([]);
      for (const { socket } of held) socket.destroy();
      // Connections that left make room.
      const until = Date.now() + 10_000;
      for (let isIn = false; !isIn;) {
        await using again = await connectRaw(proxy.port, '127.0.0.2');
        again.socket.write(`GET /honest-0 HTTP/1.1\r\nHost: ${witness.host}\r\n\r\n`);
        isIn = (await again.until((said) => said.includes('/honest-0'))).includes('/honest-0');
        if (Date.now() > until) expect.fail('no connection is let in again');
      }
    });

  if (gives('connectionLimit'))
    test('at the limit of connections a visitor takes the place of the one that rests longest, not of one under way', async () => {
      await using proxy = await open({ limits: { connections: 8 } });
      await using witness = await Witness.open(proxy);
      let asked = 0;
      await using silent = await startUpstream(() => void asked++);
      const host = await proxy.routed([silent]);
      const enter = (count: number) => Promise.all(Array.from({ length: count }, () => connectRaw(proxy.port)));
      const askSilent = ({ socket }: RawVisitor) => socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
      const busy = await enter(4);
      busy.forEach(askSilent);
      await expect.poll(() => asked).toBe(4);
      const resting = await enter(4);
      for (let n = 0; n < 6; n++) await witness.ask();
      await resting[0]!.closed();
      expect(busy.filter(({ socket }) => socket.destroyed)).toEqual([]);
      const others = await enter(4);
      others.forEach(askSilent);
      await expect.poll(() => asked).toBe(8);
      // If none rests, the new connection is closed.
      await using refused = await connectRaw(proxy.port);
      await refused.closed();
      expect([...busy, ...others].filter(({ socket }) => socket.destroyed)).toEqual([]);
      for (const { socket } of [...busy, ...resting, ...others]) socket.destroy();
      await expect
        .poll(() =>
          witness.ask().then(
            () => true,
            () => false,
          ),
        )
        .toBe(true);
    });

  // Each visitor uses a file descriptor of this process, too.
  const crowd = Math.min(10_000, openFilesLimit() - 500);

  test(
    `${crowd} connections that rest keep no new visitor out, and are closed in time`,
    { timeout: 180_000 },
    async () => {
      const restMs = 15_000;
      await using proxy = await open({ limits: { headMs: restMs, idleMs: restMs } });
      await using witness = await Witness.open(proxy);
      const held: Socket[] = [];
      const enter = async (n: number) => {
        // Several addresses, because the number of connections per address is limited.
        const socket = connect({ port: proxy.port, host: '127.0.0.1', localAddress: `127.0.0.${2 + (n % 10)}` });
        socket.on('error', () => socket.destroy()).resume();
        held.push(socket);
        await Promise.race([once(socket, 'connect'), once(socket, 'close')]);
        // Some visitors get an answer before they rest.
        if (n % 20 === 0) socket.write(`GET /honest-0 HTTP/1.1\r\nHost: ${witness.host}\r\n\r\n`);
      };
      const isOpen = ({ destroyed }: Socket) => !destroyed;
      try {
        for (let n = 0; n < crowd; n += 100) await Promise.all(Array.from({ length: 100 }, (_, at) => enter(n + at)));
        for (let n = 0; n < 20; n++) await witness.ask();
        expect(held.filter(isOpen).length).toBeGreaterThan(crowd / 2);
        await expect.poll(() => held.filter(isOpen).length, { timeout: 2 * restMs + 60_000, interval: 500 }).toBe(0);
        await witness.ask();
        expect(await proxy.subject.faults()).toEqual([]);
      } finally {
        for (const socket of held) socket.destroy();
      }
    },
  );
}
