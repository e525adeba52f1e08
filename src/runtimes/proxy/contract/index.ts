import { afterAll, beforeAll, describe } from 'vitest';
import { describeForwarding } from '#runtimes/proxy/contract/forwarding.ts';
import { describeGrpc } from '#runtimes/proxy/contract/grpc.ts';
import { describeHandover } from '#runtimes/proxy/contract/handover.ts';
import { describeHostileUpstreams } from '#runtimes/proxy/contract/hostile-upstreams.ts';
import { describeHostileVisitors } from '#runtimes/proxy/contract/hostile-visitors.ts';
import { describeRequests } from '#runtimes/proxy/contract/requests.ts';
import { describeRoutes } from '#runtimes/proxy/contract/routes.ts';
import { ProxyHouse } from '#runtimes/proxy/contract/setup.ts';
import type { ProxyContract } from '#runtimes/proxy/contract/setup.ts';
import type { ProxyContractOptions, StartProxy } from '#runtimes/proxy/contract/subject.ts';
import { describeSlowVisitors } from '#runtimes/proxy/contract/slow-visitors.ts';
import { describeWebSockets } from '#runtimes/proxy/contract/websockets.ts';

/**
 * Suite that every proxy passes. Called at the top of a test file:
 *
 *     describeProxyContract('caddy', async ({ directory, limits, trustedProxies }) => ({
 *       router: await createRouter({ directory, … }),
 *       pid: async () => …,
 *       faults: async () => …,
 *       stop: () => stopProxy(directory),
 *     }));
 *
 * Most tests share one proxy, with host names of their own.
 */
export function describeProxyContract(name: string, start: StartProxy, options: ProxyContractOptions = {}): void {
  const timeout = options.timeoutMs ?? 30_000;
  describe(`proxy contract: ${name}`, { timeout }, () => {
    let house: ProxyHouse | undefined;
    const contract: ProxyContract = {
      shared: () => house!,
      open: (changes) => ProxyHouse.open(start, changes),
      gives: (guarantee) => options.without?.[guarantee] === undefined,
    };
    beforeAll(async () => {
      house = await ProxyHouse.open(start);
    }, timeout);
    afterAll(async () => {
      await house?.[Symbol.asyncDispose]();
    }, timeout);

    describe('routes', () => describeRoutes(contract));
    describe('requests', () => describeRequests(contract));
    describe('handover', () => describeHandover(contract));
    describe('forwarding', () => describeForwarding(contract));
    describe('websockets', () => describeWebSockets(contract));
    describe('gRPC', () => describeGrpc(contract));
    describe('hostile visitors', () => describeHostileVisitors(contract));
    describe('hostile upstreams', () => describeHostileUpstreams(contract));
    describe('slow visitors', () => describeSlowVisitors(contract));
  });
}
