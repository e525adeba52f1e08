import type { Settings } from '#platform/settings/index.ts';
import type { ServiceKind } from '#services/service/holder.ts';
import { hostnameOf, publicHosts, type PortSpec } from '#services/ports/ports.ts';

export interface LinkView {
  service_id: string;
  service_type: ServiceKind;
  url: string;
  internal_port: number;
  external_port: number;
  is_qovery_domain: boolean;
  is_default: boolean;
}

type ProxySettings = Pick<Settings, 'proxyDomain' | 'proxyPort' | 'proxyPublicUrl'>;

/** Returns the public address of a host: plain HTTP on the proxy's port, unless `proxyPublicUrl` names a front end. */
function urlOf(settings: ProxySettings, host: string): { url: string; port: number } {
  const url = new URL(settings.proxyPublicUrl || `http://proxy:${settings.proxyPort}`);
  url.hostname = host;
  return { url: url.origin, port: Number(url.port) || (url.protocol === 'https:' ? 443 : 80) };
}

/**
 * Returns the addresses of a service. Its public web ports come first, under the installation's host names. Custom domains follow; they
 * lead to the default port or, if that is not public, to the first public one.
 */
export function linksOf(
  settings: ProxySettings,
  service: { id: string; kind: string; spec: { type?: string } },
  ports: PortSpec[],
  domains: string[],
): LinkView[] {
  const hosts = publicHosts(hostnameOf(service.kind, service.id, service.spec.type), ports, settings.proxyDomain);
  const main = hosts.find((host) => host.isDefault) ?? hosts[0];
  if (!main) return [];
  const named = [
    ...hosts.map((host) => ({ ...host, own: true })),
    ...domains.map((host) => ({ host, portId: main.portId, isDefault: main.isDefault, own: false })),
  ];
  return named.map(({ host, portId, isDefault, own }) => {
    const { url, port } = urlOf(settings, host);
    return {
      service_id: service.id,
      service_type: service.kind as ServiceKind,
      url,
      internal_port: ports.find((one) => one.id === portId)!.internal_port,
      external_port: port,
      is_qovery_domain: own,
      is_default: isDefault,
    };
  });
}
