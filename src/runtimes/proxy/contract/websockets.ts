import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import type { ProxyContract } from '#runtimes/proxy/contract/setup.ts';
import { connectRaw } from '#runtimes/proxy/contract/visitors.ts';
import { deadUpstream, echo, serveWebSockets, startUpstream } from '#runtimes/proxy/contract/upstreams.ts';

/** Address for Node's own client, which resolves names: those below `localhost` are not known everywhere. */
const ADDRESS = '127.0.0.1';

export const handshake = (host: string): string =>
  [
    'GET /socket HTTP/1.1',
    `Host: ${host}`,
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    '',
    '',
  ].join('\r\n');

/** Sends the bytes and reads until the answer contains the text, or the proxy closes the connection. */
async function exchange(port: number, bytes: string, end: string): Promise<string> {
  await using visitor = await connectRaw(port);
  visitor.socket.write(bytes);
  return await visitor.until((said) => said.includes(end));
}

export function describeWebSockets({ shared, gives }: ProxyContract): void {
  test('a websocket passes texts both ways, counts as under way, and ends at both sides', async () => {
    await using upstream = await startUpstream(echo('a'));
    serveWebSockets(upstream.server);
    const proxy = shared();
    await proxy.route(ADDRESS, [upstream], 'HTTP', 1);
    const client = new WebSocket(`ws://${ADDRESS}:${proxy.port}/socket`);
    await once(client, 'open');
    for (const word of ['first', 'second']) {
      client.send(word);
      const [event] = (await once(client, 'message')) as [MessageEvent];
      expect(event.data).toBe(word.toUpperCase());
    }
    const meant = [{ address: '127.0.0.1', port: upstream.port }];
    const asked = performance.now();
    await proxy.subject.router.drained(meant, 300);
    expect(performance.now() - asked).toBeGreaterThanOrEqual(299);
    client.close();
    await once(client, 'close');
    await proxy.subject.router.drained(meant, 15_000);
    expect(performance.now() - asked).toBeLessThan(14_000);
  });

  test('a websocket finds another upstream when one takes no connections', async () => {
    await using upstream = await startUpstream(echo('a'));
    serveWebSockets(upstream.server);
    const proxy = shared();
    await proxy.route(ADDRESS, [await deadUpstream(), upstream], 'HTTP', 2);
    for (let n = 0; n < 2; n++) {
      const client = new WebSocket(`ws://${ADDRESS}:${proxy.port}/`);
      await once(client, 'open');
      client.close();
      await once(client, 'close');
    }
  });

  /** Starts an upstream that greets in the packet of its handshake, and then echoes. */
  const startGreeter = async () => {
    const upstream = await startUpstream(echo('a'));
    upstream.server.on('upgrade', (_request, socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello');
      socket.on('error', () => socket.destroy());
      socket.pipe(socket);
    });
    return upstream;
  };

  if (gives('earlyBytes'))
    test('bytes that come with the handshake are not lost', async () => {
      await using upstream = await startGreeter();
      const proxy = shared();
      const answer = await exchange(proxy.port, `${handshake(await proxy.routed([upstream]))}early`, 'helloearly');
      expect(answer).toMatch(/^HTTP\/1\.1 101 /);
      expect(answer).toContain('\r\n\r\nhelloearly');
    });

  if (gives('halfClosed'))
    test('bytes of a visitor that ends its side after the handshake are not lost', async () => {
      await using upstream = await startGreeter();
      const proxy = shared();
      const host = await proxy.routed([upstream]);
      const socket = connect(proxy.port, '127.0.0.1');
      socket.end(`${handshake(host)}early`);
      const answer = await text(socket);
      expect(answer).toMatch(/^HTTP\/1\.1 101 /);
      expect(answer).toContain('\r\n\r\nhelloearly');
    });

  test.each([
    ['refuses the handshake', 403, 'not for you'],
    ['does not know of websockets', 200, 'plain answer'],
  ])('the answer of an upstream that %s reaches the client', async (_what, status, body) => {
    await using upstream = await startUpstream((_request, response) =>
      response.writeHead(status, { connection: 'close' }).end(body),
    );
    const proxy = shared();
    const host = await proxy.routed([upstream]);
    const answer = await exchange(proxy.port, handshake(host), body);
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(answer).toContain(body);
    await proxy.subject.router.drained([{ address: '127.0.0.1', port: upstream.port }], 15_000);
  });

  test('a websocket for an unknown host is answered with 404', async () => {
    const proxy = shared();
    expect(await exchange(proxy.port, handshake(proxy.host()), '\r\n\r\n')).toMatch(/^HTTP\/1\.1 404 /);
  });
}
