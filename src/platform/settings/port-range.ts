import type { PortRange } from '#kernel/port-range.ts';
import type { SettingValues } from '#platform/settings/schema.ts';

type PortSettings = Pick<
  SettingValues,
  'publishedPorts' | 'port' | 'operationsPort' | 'proxy' | 'proxyPort' | 'proxyHttpsPort' | 'terraformStatePort'
>;

/** Returns the operator's range without the program's own ports. */
export function publishedRange(settings: PortSettings): PortRange {
  const [from, to] = settings.publishedPorts.split('-').map(Number) as [number, number];
  const own = [settings.port, settings.operationsPort, settings.proxyPort, settings.terraformStatePort];
  if (settings.proxy !== 'builtin') own.push(settings.proxyHttpsPort);
  return { from, to, reserved: own.filter((port) => port >= from && port <= to) };
}
