import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { LATENCY_BOUNDS_MS } from '#kernel/latency-classes.ts';
import { until } from '#runtimes/contract/setup.ts';
import type { ProxyContract, ProxyHouse } from '#runtimes/proxy/contract/setup.ts';
import {
  deadUpstream,
  echo,
  serveWebSockets,
  startGrpcUpstream,
  startUpstream,
} from '#runtimes/proxy/contract/upstreams.ts';
import { call, connectRaw, openHttp2 } from '#runtimes/proxy/contract/visitors.ts';
import type { Router, ServiceRequests } from '#runtimes/router.ts';

/** Adds up the requests of a service until a condition holds for them. */
async function counted(
  router: Router,
  serviceId: string,
  isEnough: (all: ServiceRequests) => boolean,
): Promise<ServiceRequests> {
  const all: ServiceRequests = {
    serviceId,
    statuses: [0, 0, 0, 0, 0],
    latencies: LATENCY_BOUNDS_MS.map(() => 0).concat(0),
  };
  const read = async () => {
    for (const one of (await router.requests())?.services ?? []) {
      if (one.serviceId !== serviceId) continue;
      one.statuses.forEach((count, at) => (all.statuses[at]! += count));
      one.latencies.forEach((count, at) => (all.latencies[at]! += count));
    }
    return all;
  };
  return until(read, isEnough);
}

const sum = (numbers: number[]): number => numbers.reduce((total, one) => total + one, 0);

/** Opens a proxy whose first count was taken. */
async function openCounted(open: ProxyContract['open']): Promise<ProxyHouse> {
  const proxy = await open();
  expect(await proxy.subject.router.requests()).toBeNull();
  return proxy;
}

/** Tests of what a proxy tells of its requests. */
export function describeRequests({ open }: ProxyContract): void {
  test('requests are counted for their service, by the class of their status and by their time', async () => {
    await using upstream = await startUpstream((request, response) => {
      response.statusCode = Number(request.url!.slice(1));
      setTimeout(() => response.end('ok'), response.statusCode === 200 ? 60 : 0);
    });
    await using proxy = await openCounted(open);
    const host = await proxy.routed([upstream]);
    const other = await proxy.routed([await deadUpstream()]);
    for (const status of [200, 200, 302, 404, 500]) await proxy.fetch(host, { path: `/${status}` });
    await proxy.fetch(other);
    await proxy.fetch('nowhere.localhost');
    const { statuses, latencies } = await counted(proxy.subject.router, host, (all) => sum(all.statuses) >= 5);
    expect(statuses).toEqual([0, 2, 1, 1, 1]);
    expect(sum(latencies)).toBe(5);
    expect(sum(latencies.filter((_count, at) => (LATENCY_BOUNDS_MS[at] ?? Infinity) > 50))).toBeGreaterThanOrEqual(2);
    await proxy.fetch(other);
    expect((await counted(proxy.subject.router, other, (all) => sum(all.statuses) > 0)).statuses[4]).toBe(1);
  });

  test('no request is counted twice, and none of an unknown host', async () => {
    await using upstream = await startUpstream(echo('a'));
    await using proxy = await openCounted(open);
    const host = await proxy.routed([upstream]);
    await proxy.fetch(host);
    await proxy.fetch('nowhere.localhost');
    const { router } = proxy.subject;
    await counted(router, host, (all) => sum(all.statuses) > 0);
    await proxy.fetch(host);
    const second = await counted(router, host, (all) => sum(all.statuses) > 0);
    expect(second.statuses).toEqual([0, 1, 0, 0, 0]);
    const last = await router.requests();
    expect(last!.services.map(({ serviceId, statuses }) => [serviceId, sum(statuses)])).toEqual([[host, 0]]);
    expect(last!.seconds).toBeGreaterThan(0);
  });

  test('a host counts with its port, with a final dot and under a second name', async () => {
    await using upstream = await startUpstream(echo('a'));
    await using proxy = await openCounted(open);
    const [host, second] = [proxy.host(), proxy.host()];
    const entries = [host, second].map((name) => ({
      host: name,
      protocol: 'HTTP' as const,
      upstreams: [{ address: upstream.address, port: upstream.port }],
    }));
    await proxy.subject.router.set(host, 1, entries);
    for (const name of [host, second, `${host}.`, `${host}:${proxy.port}`, `${host}:9000`])
      expect(await proxy.nameAt(name)).toBe('a');
    const { statuses } = await counted(proxy.subject.router, host, (all) => sum(all.statuses) >= 5);
    expect(statuses).toEqual([0, 5, 0, 0, 0]);
  });

  test('requests go on being counted after a change of routes, another release and a start of the control plane', async () => {
    await using upstream = await startUpstream(echo('a'));
    await using proxy = await openCounted(open);
    const host = await proxy.routed([upstream]);
    await proxy.fetch(host);
    await proxy.route(host, [upstream], 'HTTP', 2);
    await proxy.fetch(host);
    await proxy.subject.router.close();
    await proxy.start({ release: 'b' });
    await proxy.fetch(host);
    const { statuses } = await counted(proxy.subject.router, host, (all) => sum(all.statuses) >= 3);
    expect(statuses).toEqual([0, 3, 0, 0, 0]);
  });

  test('a visitor who leaves before the answer counts as 4xx', async () => {
    let hasCome = false;
    await using upstream = await startUpstream(() => (hasCome = true));
    await using proxy = await openCounted(open);
    const host = await proxy.routed([upstream]);
    await using visitor = await connectRaw(proxy.port);
    visitor.socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    await until(async () => hasCome, Boolean);
    visitor.socket.destroy();
    const { statuses } = await counted(proxy.subject.router, host, (all) => sum(all.statuses) > 0);
    expect(statuses).toEqual([0, 0, 0, 1, 0]);
  });

  test('a websocket does not count', async () => {
    await using upstream = await startUpstream(echo('a'));
    serveWebSockets(upstream.server);
    await using proxy = await openCounted(open);
    // Node's own client resolves names.
    const host = '127.0.0.1';
    await proxy.route(host, [upstream]);
    const client = new WebSocket(`ws://${host}:${proxy.port}/socket`);
    await once(client, 'open');
    client.close();
    await once(client, 'close');
    await proxy.subject.router.drained([{ address: upstream.address, port: upstream.port }], 10_000);
    await proxy.fetch(host);
    const { statuses } = await counted(proxy.subject.router, host, (all) => sum(all.statuses) > 0);
    expect(statuses).toEqual([0, 1, 0, 0, 0]);
  });

  test('calls of gRPC count by their status of HTTP', async () => {
    await using upstream = await startGrpcUpstream('a');
    await using proxy = await openCounted(open);
    const host = await proxy.routed([upstream], 'GRPC');
    await using session = openHttp2(proxy.port);
    for (let n = 0; n < 3; n++) {
      const stream = call(session, host);
      stream.end('x');
      expect(await text(stream)).toBe('x');
    }
    const { statuses, latencies } = await counted(proxy.subject.router, host, (all) => sum(all.statuses) >= 3);
    expect(statuses).toEqual([0, 3, 0, 0, 0]);
    expect(sum(latencies)).toBe(3);
  });
}
