import { Agent } from 'node:http';
import { expect, test } from 'vitest';
import { startTraffic, until } from '#runtimes/contract/setup.ts';
import { brokenPromises, type ProxyContract } from '#runtimes/proxy/contract/setup.ts';
import { echo, startUpstream } from '#runtimes/proxy/contract/upstreams.ts';
import type { TestUpstream } from '#runtimes/proxy/contract/upstreams.ts';
import { fetchAgain, fetchFrom } from '#runtimes/proxy/contract/visitors.ts';
import type { RouteEntry, Upstream } from '#runtimes/router.ts';

const entry = (host: string, ...upstreams: Upstream[]): RouteEntry => ({ host, protocol: 'HTTP', upstreams });

/** Tests of the promises of `Router` about routes, and about waiting until an upstream is drained. */
export function describeRoutes({ shared, open, gives }: ProxyContract): void {
  const fetchKept = gives('restingConnections') ? fetchFrom : fetchAgain;

  test('routes are served as soon as they are set, and answer 404 as soon as they are removed', async () => {
    await using upstream = await startUpstream(echo('a'));
    const proxy = shared();
    const host = await proxy.routed([upstream]);
    expect(await proxy.nameAt(host)).toBe('a');
    await proxy.route(host, [upstream]);
    expect(await proxy.nameAt(host)).toBe('a');
    await proxy.subject.router.remove(host);
    expect(await proxy.nameAt(host)).toBe('404');
    await proxy.subject.router.remove(host);
  });

  test('a change takes away the hosts that the service no longer has', async () => {
    await using upstream = await startUpstream(echo('a'));
    const proxy = shared();
    const [host, other] = [proxy.host(), proxy.host()];
    await proxy.subject.router.set(host, 1, [entry(host, upstream), entry(other, upstream)]);
    expect(await proxy.nameAt(other)).toBe('a');
    await proxy.subject.router.set(host, 2, [entry(host, upstream)]);
    expect(await proxy.nameAt(other)).toBe('404');
    expect(await proxy.nameAt(host)).toBe('a');
  });

  test('a lower generation is refused as superseded, after a restart of the proxy too', async () => {
    await using a = await startUpstream(echo('a'));
    await using b = await startUpstream(echo('b'));
    await using proxy = await open();
    const host = proxy.host();
    await proxy.route(host, [b], 'HTTP', 2);
    await expect(proxy.route(host, [a], 'HTTP', 1)).rejects.toMatchObject({
      name: 'RuntimeError',
      code: 'superseded',
    });
    await proxy.subject.stop();
    await proxy.start();
    await expect(proxy.route(host, [a], 'HTTP', 1)).rejects.toMatchObject({ code: 'superseded' });
    expect(await proxy.nameAt(host)).toBe('b');
  });

  test('a host of another service is refused, and the present routes stay as they are', async () => {
    await using a = await startUpstream(echo('a'));
    await using b = await startUpstream(echo('b'));
    const proxy = shared();
    const host = await proxy.routed([a]);
    const other = proxy.host();
    const taken = [entry(other, b), entry(host.toUpperCase(), b)];
    await expect(proxy.subject.router.set('thief', 1, taken)).rejects.toMatchObject({ code: 'refused' });
    expect(await proxy.nameAt(host)).toBe('a');
    expect(await proxy.nameAt(other)).toBe('404');
  });

  test('no request fails and none reaches the old instance once the new one has the traffic', async () => {
    const releases: TestUpstream[] = [];
    const proxy = shared();
    const host = proxy.host();
    let stop: ReturnType<typeof startTraffic> | undefined;
    const agent = new Agent({ keepAlive: true });
    try {
      const release = async (generation: number) => {
        let isOld = false;
        const late: string[] = [];
        const upstream = await startUpstream((_request, response) => {
          if (isOld) late.push(`a request reached release ${generation} after it was drained`);
          setTimeout(() => response.end(JSON.stringify({ name: String(generation) })), Math.random() * 20);
        });
        releases.push(upstream);
        await proxy.route(host, [upstream], 'HTTP', generation);
        return { upstream, late, end: () => (isOld = true) };
      };
      let present = await release(1);
      stop = startTraffic(() => fetchKept(proxy.port, host, { agent }), 16);
      for (let generation = 2; generation <= 12; generation++) {
        const next = await release(generation);
        await proxy.subject.router.drained([{ address: '127.0.0.1', port: present.upstream.port }], 5000);
        present.end();
        // An instance that is asked to end closes its listener and its idle connections.
        present.upstream.server.close();
        present.upstream.server.closeIdleConnections();
        await new Promise((resolve) => setTimeout(resolve, 30));
        expect(present.late).toEqual([]);
        present = next;
      }
      const { sent, failures } = await stop();
      expect(brokenPromises(gives, failures)).toEqual([]);
      expect(sent).toBeGreaterThan(100);
    } finally {
      await stop?.();
      agent.destroy();
      for (const upstream of releases) await upstream[Symbol.asyncDispose]();
    }
  });

  test('routes of other services change under load without a lost request', async () => {
    await using upstream = await startUpstream(echo('a'));
    const proxy = shared();
    const host = await proxy.routed([upstream]);
    const others = [proxy.host(), proxy.host(), proxy.host()];
    const agent = new Agent({ keepAlive: true });
    const stop = startTraffic(() => fetchKept(proxy.port, host, { agent, method: 'POST', body: 'x' }), 8);
    for (let generation = 1; generation <= 10; generation++)
      for (const other of others) await proxy.route(other, [upstream], 'HTTP', generation);
    for (const other of others) await proxy.subject.router.remove(other);
    const { sent, failures } = await stop();
    agent.destroy();
    expect(brokenPromises(gives, failures)).toEqual([]);
    expect(sent).toBeGreaterThan(20);
  });

  test.each([0, undefined])(
    'drained waits for what is under way, but no longer than it may (port %s)',
    async (givenPort) => {
      const { promise: go, resolve } = Promise.withResolvers<void>();
      const came = Promise.withResolvers<void>();
      await using upstream = await startUpstream((_request, response) => {
        came.resolve();
        void go.then(() => response.end('late'));
      });
      // The proxy is not shared: port 0 waits for requests to all ports of the address, also those of other tests.
      await using proxy = await open();
      const host = await proxy.routed([upstream]);
      const answer = proxy.fetch(host);
      await came.promise;
      const meant = [{ address: '127.0.0.1', port: givenPort ?? upstream.port }];
      await proxy.subject.router.drained([{ address: '127.0.0.10', port: 0 }], 10_000);
      const started = performance.now();
      await proxy.subject.router.drained(meant, 300);
      expect(performance.now() - started).toBeGreaterThanOrEqual(299);
      let drained = false;
      const waiting = proxy.subject.router.drained(meant, 10_000).then(() => (drained = true));
      await new Promise((next) => setTimeout(next, 200));
      expect(drained).toBe(false);
      resolve();
      await waiting;
      expect(await answer).toMatchObject({ status: 200, body: 'late' });
    },
  );

  test('drained waits for a request whose upstream no route names any more', async () => {
    const { promise: go, resolve } = Promise.withResolvers<void>();
    const came = Promise.withResolvers<void>();
    await using old = await startUpstream((_request, response) => {
      came.resolve();
      void go.then(() => response.end('old'));
    });
    await using next = await startUpstream(echo('next'));
    const proxy = shared();
    const host = await proxy.routed([old]);
    const answer = proxy.fetch(host);
    await came.promise;
    await proxy.route(host, [next], 'HTTP', 2);
    expect(await proxy.nameAt(host)).toBe('next');
    let drained = false;
    const meant = [{ address: '127.0.0.1', port: old.port }];
    const waiting = proxy.subject.router.drained(meant, 10_000).then(() => (drained = true));
    await new Promise((later) => setTimeout(later, 300));
    expect(drained).toBe(false);
    resolve();
    await waiting;
    expect(await answer).toMatchObject({ status: 200, body: 'old' });
  });

  test('drained of what is not there is done at once', async () => {
    const started = performance.now();
    await shared().subject.router.drained([{ address: '127.0.0.1', port: 9 }], 10_000);
    expect(performance.now() - started).toBeLessThan(8_000);
  });

  test('a proxy that is killed is back with its routes and its port', async () => {
    await using upstream = await startUpstream(echo('a'));
    await using proxy = await open();
    const host = await proxy.routed([upstream]);
    const { port } = proxy;
    const pid = await proxy.subject.pid();
    process.kill(pid, 'SIGKILL');
    await until(
      () => proxy.nameAt(host).catch(String),
      (name) => name === 'a',
    );
    expect(proxy.port).toBe(port);
    expect(await proxy.subject.pid()).not.toBe(pid);
    await proxy.route(host, [upstream], 'HTTP', 2);
  });

  test('a change waits for a proxy that is just being started again', async () => {
    await using upstream = await startUpstream(echo('a'));
    await using proxy = await open();
    process.kill(await proxy.subject.pid(), 'SIGKILL');
    const host = await proxy.routed([upstream]);
    expect(await proxy.nameAt(host)).toBe('a');
  });

  test('the proxy serves on when the control plane lets go of it, and the next one takes it over', async () => {
    await using upstream = await startUpstream(echo('a'));
    await using proxy = await open();
    const host = await proxy.routed([upstream]);
    const [port, pid] = [proxy.port, await proxy.subject.pid()];
    await proxy.subject.router.close();
    expect(await proxy.nameAt(host)).toBe('a');
    await proxy.start();
    expect(proxy.port).toBe(port);
    expect(await proxy.subject.pid()).toBe(pid);
    expect(await proxy.nameAt(host)).toBe('a');
    await expect(proxy.route(host, [upstream], 'HTTP', 0)).rejects.toMatchObject({ code: 'superseded' });
  });
}
