import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { expect, test } from 'vitest';
import type { ProxyContract, ProxyHouse } from '#runtimes/proxy/contract/setup.ts';
import { echo, startUpstream } from '#runtimes/proxy/contract/upstreams.ts';
import { connectRaw, countAnswers } from '#runtimes/proxy/contract/visitors.ts';
import { handshake } from '#runtimes/proxy/contract/websockets.ts';
import { valuesOf, Witness } from '#runtimes/proxy/contract/witness.ts';

const SMUGGLED = (host: string) => `GET /smuggled HTTP/1.1\r\nHost: ${host}\r\nX-Forwarded-For: 6.6.6.6\r\n\r\n`;

/** Head lines and body of a request that hides another one, with the text `smuggled`. */
type Attack = (smuggled: string, host: string) => string;

const post =
  (lines: string, body: (smuggled: string) => string): Attack =>
  (smuggled, host) => {
    const text = body(smuggled);
    const fields = lines.replaceAll('LENGTH', String(text.length)).replaceAll('\n', '\r\n');
    return `POST /outer HTTP/1.1\r\nHost: ${host}\r\n${fields}\r\n\r\n${text}`;
  };

const whole = (smuggled: string) => smuggled;
const afterChunks = (smuggled: string) => `0\r\n\r\n${smuggled}`;
const asChunk = (smuggled: string) => `${smuggled.length.toString(16)}\r\n${smuggled}\r\n0\r\n\r\n`;

/** Requests that hide others: no part may reach an upstream as another request. */
export const ATTACKS: Record<string, Attack> = {
  'Connection that names Content-Length': post('Connection: keep-alive, content-length\nContent-Length: LENGTH', whole),
  'Connection that names Content-Length, and closes': post(
    'Connection: Content-Length, close\nContent-Length: LENGTH',
    whole,
  ),
  'Connection that names Transfer-Encoding': post('Connection: transfer-encoding\nTransfer-Encoding: chunked', asChunk),
  'Connection that names Host': post('Connection: host\nContent-Length: LENGTH', whole),
  'two Connection headers': post('Connection: keep-alive\nConnection: content-length\nContent-Length: LENGTH', whole),
  'Content-Length and Transfer-Encoding': post('Content-Length: LENGTH\nTransfer-Encoding: chunked', afterChunks),
  'Transfer-Encoding and Content-Length': post('Transfer-Encoding: chunked\nContent-Length: 4', afterChunks),
  'Transfer-Encoding that is nearly chunked': post('Transfer-Encoding: xchunked\nContent-Length: LENGTH', afterChunks),
  'Transfer-Encoding with a space before the colon': post(
    'Transfer-Encoding : chunked\nContent-Length: LENGTH',
    afterChunks,
  ),
  'Transfer-Encoding with an underscore': post('Transfer_Encoding: chunked\nContent-Length: LENGTH', afterChunks),
  'Content-Length with an underscore': post('Content_Length: 3\nContent-Length: LENGTH', whole),
  'Transfer-Encoding that is folded': post('Transfer-Encoding:\n chunked\nContent-Length: LENGTH', afterChunks),
  'a folded line that looks like a header': post('X-A: 1\n Content-Length: 0\nContent-Length: LENGTH', whole),
  'gzip, chunked': post('Transfer-Encoding: gzip, chunked', asChunk),
  'chunked, identity': post('Transfer-Encoding: chunked, identity', afterChunks),
  'chunked twice': post('Transfer-Encoding: chunked\nTransfer-Encoding: chunked', asChunk),
  'two lengths': post('Content-Length: 0\nContent-Length: LENGTH', whole),
  'two lengths in one': post('Content-Length: 0, LENGTH', whole),
  'a length with a sign': post('Content-Length: +LENGTH', whole),
  'a hexadecimal length': post('Content-Length: 0x5', whole),
  'a line that ends with LF': post('X-A: 1\nContent-Length: LENGTH', whole),
  'a carriage return within a value': post('X-A: 1\rContent-Length: 0\nContent-Length: LENGTH', whole),
  'a NUL within a value': post('X-A: 1\0\nContent-Length: LENGTH', whole),
  'a chunk extension with LF': post('Transfer-Encoding: chunked', (s) => `2;\nxx\r\nab\r\n0\r\n\r\n${s}`.slice(0, -1)),
  'a chunk extension that is quoted': post(
    'Transfer-Encoding: chunked',
    (s) => `${s.length.toString(16)};a="\r\n${s}\r\n0\r\n\r\n`,
  ),
  'a chunk size of too many digits': post(
    'Transfer-Encoding: chunked',
    (s) => `10000000000000000${s.length.toString(16)}\r\n${s}\r\n0\r\n\r\n`,
  ),
  'a chunk size with a prefix': post(
    'Transfer-Encoding: chunked',
    (s) => `0x${s.length.toString(16)}\r\n${s}\r\n0\r\n\r\n`,
  ),
  'a chunk longer than its size': post('Transfer-Encoding: chunked', (s) => `1\r\nab\r\n0\r\n\r\n${s}`.slice(0, -1)),
  'trailers that frame': post(
    'Transfer-Encoding: chunked',
    (s) => `${s.length.toString(16)}\r\n${s}\r\n0\r\nContent-Length: 3\r\nHost: x\r\n\r\n`,
  ),
  'Expect with a body': post('Expect: 100-continue\nContent-Length: LENGTH', whole),
  'an upgrade to h2c with a body': post(
    'Connection: Upgrade, HTTP2-Settings\nUpgrade: h2c\nHTTP2-Settings: AAMAAABk\nContent-Length: LENGTH',
    whole,
  ),
  'an upgrade to websocket with a body': (smuggled, host) =>
    handshake(host).replace('\r\n\r\n', `\r\nContent-Length: ${smuggled.length}\r\n\r\n${smuggled}`),
  'GET with a body': (smuggled, host) =>
    `GET /outer HTTP/1.1\r\nHost: ${host}\r\nContent-Length: ${smuggled.length}\r\n\r\n${smuggled}`,
  'HTTP/1.0 with chunks': (smuggled, host) =>
    `POST /outer HTTP/1.0\r\nHost: ${host}\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n${asChunk(smuggled)}`,
  'HTTP/1.0 with chunks and a length': (smuggled, host) =>
    `POST /outer HTTP/1.0\r\nHost: ${host}\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\n0\r\n\r\n${smuggled}`.slice(
      0,
      -2,
    ),
};

/** Heads that a strict proxy refuses before any upstream receives them. */
const REFUSED: Record<string, (host: string) => string> = {
  'two hosts': (host) => `GET / HTTP/1.1\r\nHost: ${host}\r\nHost: other.example\r\n\r\n`,
  'the same host twice': (host) => `GET / HTTP/1.1\r\nHost: ${host}\r\nhost: ${host}\r\n\r\n`,
  'a host in place of its port': (host) => `GET / HTTP/1.1\r\nHost: ${host}:other.example\r\n\r\n`,
  'a host in half of a bracket': (host) => `GET / HTTP/1.1\r\nHost: [${host}\r\n\r\n`,
  'no host': () => 'GET / HTTP/1.1\r\nX-A: 1\r\n\r\n',
  'a space in a header name': (host) => `GET / HTTP/1.1\r\nHost: ${host}\r\nX : 1\r\n\r\n`,
  'a length and chunks': (host) =>
    `POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET`,
  'another encoding than chunked': (host) =>
    `POST / HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
  'chunks in HTTP/1.0': (host) =>
    `POST / HTTP/1.0\r\nHost: ${host}\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n`,
  'a head of 64 KiB': (host) => `GET / HTTP/1.1\r\nHost: ${host}\r\nX-A: ${'a'.repeat(65_536)}\r\n\r\n`,
  'an unknown method': (host) => `GE\tT / HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
  CONNECT: (host) => `CONNECT ${host}:443 HTTP/1.1\r\nHost: ${host}:443\r\n\r\n`,
};

/** Entries of `REFUSED` that RFC 9112 (§6.1, §6.3) lets a proxy read in one certain way instead. */
const FRAMINGS = ['a length and chunks', 'chunks in HTTP/1.0'];

async function send(proxy: ProxyHouse, bytes: string): Promise<string> {
  await using visitor = await connectRaw(proxy.port);
  visitor.socket.write(bytes, 'latin1');
  return await visitor.until((said) => countAnswers(said) > 0);
}

/** Tests of strangers whose requests try to take over or stop the traffic of others. */
export function describeHostileVisitors(contract: ProxyContract): void {
  describeSmuggling(contract);
  describePipelining(contract);
  describeUpgrades(contract);
  describeForwardedHeaders(contract);
}

function describeSmuggling({ shared, gives }: ProxyContract): void {
  test.each(Object.keys(ATTACKS))('no upstream sees a request that is hidden in another: %s', async (name) => {
    const proxy = shared();
    await using witness = await Witness.open(proxy);
    await using visitor = await connectRaw(proxy.port);
    const attack = ATTACKS[name]!(SMUGGLED(witness.host), witness.host);
    visitor.socket.write(attack, 'latin1');
    // A proxy that reads all of it as the beginning of a body waits for the rest.
    await visitor.quiet((said) => countAnswers(said) > 0);
    for (let n = 0; n < 5; n++) await witness.ask();
    // Further bytes on the connection are read as the visitor's own request, or not at all.
    visitor.socket.end(SMUGGLED(witness.host).replace('/smuggled', '/open'), 'latin1');
    await visitor.until((said) => countAnswers(said) > 1);
    await witness.ask();
    const smuggled = witness.foreign.filter(({ line }) => line.includes('/smuggled'));
    // A body that the proxy read as the visitor's next request on the same connection is the visitor's own request.
    const own = smuggled.filter((seen) => valuesOf(seen, 'x-forwarded-for').every((value) => value === '127.0.0.1'));
    expect(smuggled.filter((seen) => !own.includes(seen))).toEqual([]);
    expect(own.length).toBeLessThanOrEqual(Math.max(0, countAnswers(visitor.said) - 1));
  });

  const refused = Object.keys(REFUSED).filter((name) => !FRAMINGS.includes(name) || gives('strictFraming'));
  test.each(refused)('no upstream hears of a request with %s', async (name) => {
    const proxy = shared();
    await using upstream = await startUpstream(echo('a'));
    const host = await proxy.routed([upstream]);
    const said = await send(proxy, REFUSED[name]!(host));
    expect(said).toMatch(/^HTTP\/1\.[01] (4\d\d|501)/);
    expect(upstream.connections).toBe(0);
  });

  test('a request to another host in absolute form reaches the service of one host only', async () => {
    const proxy = shared();
    await using mine = await Witness.open(proxy);
    await using other = await Witness.open(proxy);
    const said = await send(proxy, `GET http://${other.host}/spoof HTTP/1.1\r\nHost: ${mine.host}\r\n\r\n`);
    expect(said).toMatch(/^HTTP\/1\.1 (200|4\d\d)/);
    for (const witness of [mine, other])
      for (const seen of witness.foreign) {
        expect(valuesOf(seen, 'host')).toEqual([witness.host]);
        expect(valuesOf(seen, 'x-forwarded-host')).toEqual([witness.host]);
      }
  });

  test('a refused request ends its connection: what follows is not heard', async () => {
    const proxy = shared();
    await using upstream = await startUpstream(echo('a'));
    const host = await proxy.routed([upstream]);
    await using visitor = await connectRaw(proxy.port);
    const plain = `GET /plain HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
    visitor.socket.write(plain);
    await visitor.until((said) => said.includes('"url":"/plain"'));
    visitor.socket.write(`GET /bad HTTP/1.1\r\nHost: ${host}\r\nX : 1\r\n\r\n${plain}`);
    const said = await visitor.closed();
    expect(said.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 400']);
  });
}

function describePipelining({ shared }: ProxyContract): void {
  test('requests that a visitor pipelines reach the upstream one after the other, on one connection', async () => {
    const proxy = shared();
    const held = Promise.withResolvers<void>();
    let [underWay, most] = [0, 0];
    await using upstream = await startUpstream((incoming, response) => {
      if (incoming.url === '/other') return void response.end('other');
      most = Math.max(most, ++underWay);
      response.once('close', () => underWay--);
      void held.promise.then(() => response.end(`answer ${incoming.url}`));
    });
    const host = await proxy.routed([upstream]);
    await using visitor = await connectRaw(proxy.port);
    const paths = Array.from({ length: 20 }, (_, n) => `/${n}`);
    const body = 'x'.repeat(300);
    const sent = paths.map((path, n) =>
      n % 2 === 0
        ? `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`
        : `POST ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    visitor.socket.write(sent.join(''));
    await once(upstream.server, 'request');
    // By the time that other visitors are answered, the proxy has sent anything beyond the first request.
    for (let n = 0; n < 5; n++) await proxy.fetch(host, { path: '/other' });
    expect(most).toBe(1);
    held.resolve();
    const said = await visitor.until((text) => text.includes(`answer ${paths.at(-1)}`));
    expect(said.match(/answer \/\d+/g)).toEqual(paths.map((path) => `answer ${path}`));
    expect(most).toBe(1);
  });
}

function describeUpgrades({ shared }: ProxyContract): void {
  const upgrade = (host: string, path = 'b') => handshake(host).replace('/socket', `/${path}`);

  test.each<[string, (host: string) => string]>([
    [
      'after a request with an unusual Connection',
      (host) => `GET /a HTTP/1.1\r\nHost: ${host}\r\nConnection: keep-alive, x\r\n\r\n${upgrade(host)}`,
    ],
    ['after a plain request', (host) => `GET /a HTTP/1.1\r\nHost: ${host}\r\n\r\n${upgrade(host)}`],
    [
      'after a request with a body',
      (host) => `POST /a HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 4\r\n\r\nbody${upgrade(host)}`,
    ],
    ['after another one', (host) => upgrade(host) + upgrade(host)],
    ['many at once', (host) => `GET /a HTTP/1.1\r\nHost: ${host}\r\n\r\n${upgrade(host).repeat(20)}`],
  ])('an upgrade that is pipelined %s harms nobody', async (_how, attack) => {
    const proxy = shared();
    await using witness = await Witness.open(proxy);
    const pid = await proxy.subject.pid();
    for (let n = 0; n < 5; n++) {
      await using visitor = await connectRaw(proxy.port);
      visitor.socket.write(attack(witness.host));
      await visitor.until((said) => countAnswers(said) > 0 || said.includes(' 101 '));
      await witness.ask();
    }
    expect(await proxy.subject.pid()).toBe(pid);
    expect(await proxy.subject.faults()).toEqual([]);
  });

  test('a visitor that leaves during its upgrade harms nobody', async () => {
    const proxy = shared();
    await using witness = await Witness.open(proxy);
    await using silent = await startUpstream(() => undefined);
    const open = new Set<Duplex>();
    silent.server.on('upgrade', (_request, socket) => open.add(socket.on('error', () => undefined)));
    const host = await proxy.routed([silent]);
    const pid = await proxy.subject.pid();
    for (let n = 0; n < 10; n++) {
      const came = once(silent.server, 'upgrade');
      const visitor = await connectRaw(proxy.port);
      visitor.socket.write(handshake(host));
      await came;
      if (n % 2 === 0) visitor.socket.resetAndDestroy();
      else visitor.socket.destroy();
    }
    for (const socket of open) socket.destroy();
    await witness.ask();
    expect(await proxy.subject.pid()).toBe(pid);
    expect(await proxy.subject.faults()).toEqual([]);
  });

  test('a request to upgrade that has a body is refused', async () => {
    const proxy = shared();
    await using upstream = await startUpstream(echo('a'));
    let upgraded = 0;
    upstream.server.on('upgrade', (_request, socket) => {
      upgraded++;
      socket.destroy();
    });
    const host = await proxy.routed([upstream]);
    const said = await send(
      proxy,
      handshake(host).replace('\r\n\r\n', '\r\nContent-Length: 5\r\n\r\nGET /smuggled HTTP/1.1\r\n'),
    );
    expect(said).not.toMatch(/^HTTP\/1\.1 101/);
    expect(upgraded).toBe(0);
  });
}

const FORGED = [
  'X-Forwarded-For: 6.6.6.6',
  'X_Forwarded_For: 6.6.6.6',
  'x-forwarded_for: 6.6.6.6',
  'X-Forwarded-Proto: https',
  'X_Forwarded_Proto: https',
  'X-Forwarded-Host: evil.example',
  'X-Forwarded-Port: 666',
  'X-Forwarded-Prefix: /evil',
  'Forwarded: for=6.6.6.6;host=evil.example',
  'X-Real-IP: 6.6.6.6',
  'X_Real_IP: 6.6.6.6',
];

function describeForwardedHeaders({ shared, open, gives }: ProxyContract): void {
  test('the upstream is told the client, scheme, host and port, and the client cannot lie about them', async () => {
    const proxy = shared();
    await using witness = await Witness.open(proxy);
    await send(proxy, `GET /forged HTTP/1.1\r\nHost: ${witness.host}\r\n${FORGED.join('\r\n')}\r\n\r\n`);
    const [seen] = witness.foreign;
    const told = ['for', 'proto', 'host'].map((name) => valuesOf(seen!, `x-forwarded-${name}`));
    expect(told).toEqual([['127.0.0.1'], ['http'], [witness.host]]);
    expect(valuesOf(seen!, 'x-forwarded-port')).toEqual([String(proxy.port)]);
    expect(JSON.stringify(seen)).not.toMatch(/6\.6\.6\.6|evil|666/);
  });

  const sixtyLines = async () => {
    const proxy = shared();
    await using witness = await Witness.open(proxy);
    const lines = Array.from({ length: 60 }, (_, n) => `x-${n}: 1`).join('\r\n');
    await send(proxy, `GET /many HTTP/1.1\r\nHost: ${witness.host}\r\n${lines}\r\n\r\n`);
    return witness.foreign[0]!.rawHeaders.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase());
  };

  test('the client is told beside 60 headers of its own', async () => {
    expect(await sixtyLines()).toEqual(expect.arrayContaining(['x-0', 'x-59', 'x-forwarded-for']));
  });

  if (gives('forwardedFirst'))
    test('the client, scheme and host come before the headers of the client', async () => {
      const names = await sixtyLines();
      const [own, first] = [names.indexOf('x-forwarded-for'), names.indexOf('x-0')];
      expect(own).toBeLessThan(first);
    });

  if (gives('lineLimit'))
    test('a head of more than 100 lines is refused, however short they are', async () => {
      const proxy = shared();
      await using witness = await Witness.open(proxy);
      for (const count of [101, 2_100, 4_000]) {
        const lines = `a:\r\n`.repeat(count);
        const said = await send(proxy, `GET /flood HTTP/1.1\r\nHost: ${witness.host}\r\n${lines}${FORGED[0]}\r\n\r\n`);
        expect(said).toMatch(/^HTTP\/1\.1 4\d\d/);
      }
      expect(witness.foreign).toEqual([]);
    });

  test('a flood of header lines does not hide who the client is', async () => {
    const proxy = shared();
    await using witness = await Witness.open(proxy);
    for (const count of [90, 1_990, 2_100]) {
      const lines = `a:\r\n`.repeat(count);
      await send(proxy, `GET /flood HTTP/1.1\r\nHost: ${witness.host}\r\n${lines}${FORGED[0]}\r\n\r\n`);
    }
    for (const seen of witness.foreign) expect(valuesOf(seen, 'x-forwarded-for')).toEqual(['127.0.0.1']);
  });

  test('the word of a trusted proxy about its client counts', async () => {
    await using proxy = await open({ trustedProxies: ['127.0.0.0/8'] });
    await using witness = await Witness.open(proxy);
    const lines = 'X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: www.example.org';
    await send(proxy, `GET /trusted HTTP/1.1\r\nHost: ${witness.host}\r\n${lines}\r\n\r\n`);
    const [seen] = witness.foreign;
    expect(valuesOf(seen!, 'x-forwarded-for').join(', ')).toMatch(/^192\.0\.2\.7\b/);
    expect(valuesOf(seen!, 'x-forwarded-proto')).toEqual(['https']);
  });

  test('the word of a proxy that is not among the trusted ones does not count', async () => {
    await using proxy = await open({ trustedProxies: ['192.0.2.0/24', '::1'] });
    await using witness = await Witness.open(proxy);
    await send(proxy, `GET /untrusted HTTP/1.1\r\nHost: ${witness.host}\r\nX-Forwarded-For: 192.0.2.7\r\n\r\n`);
    expect(valuesOf(witness.foreign[0]!, 'x-forwarded-for')).toEqual(['127.0.0.1']);
  });
}
