import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import type { ProxyContract } from '#runtimes/proxy/contract/setup.ts';
import { deadUpstream, startGrpcUpstream } from '#runtimes/proxy/contract/upstreams.ts';
import { call, headersOf, openHttp2 } from '#runtimes/proxy/contract/visitors.ts';

export function describeGrpc({ shared, gives }: ProxyContract): void {
  test('a call streams both ways and brings its trailers', async () => {
    await using upstream = await startGrpcUpstream('a');
    const proxy = shared();
    const host = await proxy.routed([upstream], 'GRPC');
    await using session = openHttp2(proxy.port);
    const stream = call(session, host, '/echo', { 'x-forwarded-for': '6.6.6.6' });
    const head = headersOf(stream);
    stream.write('first');
    expect(JSON.parse(String((await head)['x-seen']))).toEqual({ te: 'trailers', for: '127.0.0.1', host });
    expect(String((await once(stream, 'data'))[0])).toBe('first');
    stream.write('second');
    expect(String((await once(stream, 'data'))[0])).toBe('second');
    const meant = [{ address: '127.0.0.1', port: upstream.port }];
    const asked = performance.now();
    await proxy.subject.router.drained(meant, 200);
    expect(performance.now() - asked).toBeGreaterThanOrEqual(199);
    const trailers = once(stream, 'trailers');
    stream.resume().end();
    expect((await trailers)[0]).toMatchObject({ 'grpc-status': '0', 'grpc-message': 'done' });
    await proxy.subject.router.drained(meant, 15_000);
    expect(performance.now() - asked).toBeLessThan(14_000);
  });

  test('an answer that is trailers only comes through', async () => {
    await using upstream = await startGrpcUpstream('a');
    const proxy = shared();
    const host = await proxy.routed([upstream], 'GRPC');
    await using session = openHttp2(proxy.port);
    const stream = call(session, host, '/refuse');
    expect(await headersOf(stream)).toMatchObject({ ':status': 200, 'grpc-status': '7' });
    stream.close();
  });

  test('calls of one connection are shared among the upstreams, those that take none passed over', async () => {
    await using a = await startGrpcUpstream('a');
    await using b = await startGrpcUpstream('b');
    const proxy = shared();
    const host = await proxy.routed([await deadUpstream(), a, b], 'GRPC');
    await using session = openHttp2(proxy.port);
    const names = new Set<unknown>();
    for (let n = 0; n < 12; n++) {
      const stream = call(session, host);
      stream.end('x');
      names.add((await headersOf(stream))['x-name']);
      expect(await text(stream)).toBe('x');
    }
    expect(names).toEqual(new Set(['a', 'b']));
  });

  test('an upstream that comes back is connected to again', async () => {
    const proxy = shared();
    const host = proxy.host();
    await using kept = openHttp2(proxy.port);
    const ask = async () => {
      // If a change of routes closes connections, clients of gRPC reconnect.
      await using fresh = gives('restingConnections') ? null : openHttp2(proxy.port);
      const session = fresh ?? kept;
      const stream = call(session, host);
      stream.end();
      const headers = await headersOf(stream);
      stream.resume();
      return headers['x-name'] ?? headers['grpc-status'] ?? headers[':status'];
    };
    const first = await startGrpcUpstream('first');
    await proxy.route(host, [first], 'GRPC');
    expect(await ask()).toBe('first');
    await first[Symbol.asyncDispose]();
    expect(['14', 502, 503]).toContain(await ask());
    await using second = await startGrpcUpstream('second');
    await proxy.route(host, [second], 'GRPC');
    expect(await ask()).toBe('second');
  });

  test('a client that gives up ends the call at the upstream', async () => {
    await using upstream = await startGrpcUpstream('a');
    const proxy = shared();
    const host = await proxy.routed([upstream], 'GRPC');
    await using session = openHttp2(proxy.port);
    const ended = new Promise<void>((resolve) =>
      upstream.server.on('stream', (seen) => seen.on('close', () => resolve())),
    );
    const stream = call(session, host);
    await headersOf(stream);
    stream.close(8);
    await ended;
    await proxy.subject.router.drained([{ address: '127.0.0.1', port: upstream.port }], 15_000);
  });
}
