import { DEFAULT_LIMITS } from '#runtimes/proxy/limits.ts';
import type { StartProxy } from '#runtimes/proxy/contract/subject.ts';
import { faultsOf, startCaddyRouter, stopCaddyProxy } from '#runtimes/proxy/caddy/testing.ts';

/** Milliseconds by which a release's limit for connections to upstreams differs from the default. */
const differenceOf = (release: string): number => release.charCodeAt(0) - 'a'.charCodeAt(0);

/**
 * Caddy, as the suites for every proxy start it. Another release of Quarterdeck is another configuration of the same process: each
 * gets a limit that nobody notices.
 */
export const startCaddy: StartProxy = async ({ directory, limits, trustedProxies, release }) => {
  const connectMs = (limits.connectMs ?? DEFAULT_LIMITS.connectMs) + differenceOf(release);
  const router = await startCaddyRouter(directory, { limits: { ...limits, connectMs }, trustedProxies });
  return {
    router,
    pid: async () => router.pid!,
    faults: async () => faultsOf(directory),
    stop: () => stopCaddyProxy(directory),
  };
};
