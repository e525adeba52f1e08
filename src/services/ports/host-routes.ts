import type { ServiceSnapshot } from '#deployments/index.ts';
import { publicHosts, type PortSpec } from '#services/ports/ports.ts';
import type { Route } from '#runtimes/runtime.ts';

/** Returns the routes of all host names of a service; custom domains lead to its default port, or its first public one. */
export function hostRoutes(
  { hostname, customDomains, certificateDomains = [] }: ServiceSnapshot,
  ports: PortSpec[],
  proxyDomain: string,
): Route[] {
  const hosts = publicHosts(hostname, ports, proxyDomain);
  const main = hosts.find(({ isDefault }) => isDefault) ?? hosts[0];
  const domains = main ? customDomains : [];
  return [
    ...hosts.map(({ host, portId }) => ({ host, portId })),
    ...domains.map((host) => ({
      host,
      portId: main!.portId,
      ...(certificateDomains.includes(host) ? { certificate: true } : {}),
    })),
  ];
}
