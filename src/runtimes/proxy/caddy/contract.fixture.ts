import { DEFAULT_LIMITS } from '#runtimes/proxy/limits.ts';
import type { CaddyOptions } from '#runtimes/proxy/caddy/index.ts';
import type { ProxyStart, ProxySubject, StartProxy } from '#runtimes/proxy/contract/subject.ts';
import { faultsOf, startCaddyRouter, stopCaddyProxy } from '#runtimes/proxy/caddy/testing.ts';

/** Milliseconds by which a release's limit for connections to upstreams differs from the default. */
const differenceOf = (release: string): number => release.charCodeAt(0) - 'a'.charCodeAt(0);

/**
 * Starts Caddy for the suites of all proxies. Another release of Quarterdeck is another configuration of the same process: each gets a
 * slightly different limit without a visible effect.
 */
export const startCaddy: StartProxy = (start) => startWith(start, {});

/** Starts a Caddy that reports the panics of its handlers, too. */
export const startReportingCaddy: StartProxy = (start) => startWith(start, { reportsServer: true });

async function startWith(
  { directory, limits, trustedProxies, release }: ProxyStart,
  options: Partial<CaddyOptions>,
): Promise<ProxySubject> {
  const connectMs = (limits.connectMs ?? DEFAULT_LIMITS.connectMs) + differenceOf(release);
  const router = await startCaddyRouter(directory, { limits: { ...limits, connectMs }, trustedProxies, ...options });
  return {
    router,
    pid: async () => router.pid!,
    faults: async () => faultsOf(directory),
    stop: () => stopCaddyProxy(directory),
  };
}
