import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createProxyServer } from '#runtimes/proxy/builtin/proxy-server.ts';
import { RouteTable } from '#runtimes/proxy/builtin/route-table.ts';
import { Upstreams } from '#runtimes/proxy/builtin/upstreams.ts';
import { DEFAULT_LIMITS } from '#runtimes/proxy/limits.ts';
import type { ProxyLimits } from '#runtimes/proxy/limits.ts';
import type { Upstream } from '#runtimes/router.ts';

/** Proxy server in this process. */
export interface TestProxy extends AsyncDisposable {
  port: number;
  table: RouteTable;
  upstreams: Upstreams;
  /** Routes a host to upstreams, as service `service`. */
  route(host: string, upstreams: Upstream[], service?: string): void;
}

export async function startTestProxy(changes: Partial<ProxyLimits> = {}): Promise<TestProxy> {
  const limits = { ...DEFAULT_LIMITS, ...changes };
  const upstreams = new Upstreams(limits);
  const table = new RouteTable(upstreams);
  const { server, end } = createProxyServer(table, limits, []);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    table,
    upstreams,
    route: (host, to, serviceId = host) =>
      table.set({ serviceId, generation: 1, routes: [{ host, protocol: 'HTTP', upstreams: to }] }),
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, 'close');
      end();
      server.closeAllConnections();
      await closed;
    },
  };
}
