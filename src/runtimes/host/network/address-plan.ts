import { createHash } from 'node:crypto';

/** Prefix of the runtime's 256 networks (/24, RFC 1918); those that the machine has a route to are skipped. */
const PREFIX = '10.212';

/** Returns the network of an environment: `index` is its third octet. The bridge has .1, instances .2 to .254. */
export const subnet = (index: number) => `${PREFIX}.${index}.0/24`;
export const gateway = (index: number) => `${PREFIX}.${index}.1`;
export const hostAddress = (index: number, host: number) => `${PREFIX}.${index}.${host}`;

/** Parses a network of a routing table (`10.1.2.0/24`) into numbers; null for `default`. */
function parseNetwork(text: string): { from: number; to: number } | null {
  const match = /^(\d+)\.(\d+)\.(\d+)\.(\d+)(?:\/(\d+))?$/.exec(text);
  if (!match) return null;
  const address = match.slice(1, 5).reduce((sum, part) => sum * 256 + Number(part), 0);
  const size = 2 ** (32 - Number(match[5] ?? 32));
  const from = Math.floor(address / size) * size;
  return { from, to: from + size - 1 };
}

/**
 * Returns the index of a network that neither the runtime nor the machine uses; null if all are taken. The search starts at an index
 * derived from the environment, so that it usually gets the same network again.
 */
export function freeSubnet(
  environmentId: string,
  taken: ReadonlySet<number>,
  routes: readonly string[],
): number | null {
  const others = routes.map(parseNetwork).filter((network) => network !== null);
  const first = createHash('sha256').update(environmentId).digest()[0]!;
  for (let step = 0; step < 256; step++) {
    const index = (first + step) % 256;
    const { from, to } = parseNetwork(subnet(index))!;
    if (!taken.has(index) && !others.some((other) => other.from <= to && from <= other.to)) return index;
  }
  return null;
}

/** Returns the lowest free host of a network; null if all 253 are taken. */
export function freeHost(taken: ReadonlySet<number>): number | null {
  for (let host = 2; host <= 254; host++) if (!taken.has(host)) return host;
  return null;
}

/** Returns the content of a hosts file: this machine, then names with all their addresses. */
export function hostsFile(names: readonly { hostname: string; addresses: readonly string[] }[]): string {
  const lines = names.flatMap(({ hostname, addresses }) => addresses.map((address) => `${address} ${hostname}`));
  return ['127.0.0.1 localhost', '::1 localhost', ...lines, ''].join('\n');
}

/** Returns a short name, a prefix and a hash, for kernel objects whose names are limited to 15 characters. */
export const kernelName = (prefix: string, ...parts: string[]) =>
  prefix +
  createHash('sha256')
    .update(parts.join('/'))
    .digest('hex')
    .slice(0, 14 - prefix.length);

/**
 * Returns a fixed hardware address for a bridge. Otherwise a bridge has the address of its lowest port, which changes as instances come and
 * go, and others send to the old address until they ask again (requests hung for more than 10 s when an instance was replaced).
 */
export function hardwareAddress(name: string): string {
  const bytes = [...createHash('sha256').update(name).digest().subarray(0, 5)];
  return ['02', ...bytes.map((byte) => byte.toString(16).padStart(2, '0'))].join(':');
}

/**
 * Returns the hardware address of an instance, derived from its IP address. The next instance with that IP address is then reached at once;
 * otherwise others keep the old hardware address for up to 45 s, in which nothing reaches it.
 */
export function hardwareAddressOf(index: number, host: number): string {
  const bytes = hostAddress(index, host).split('.').map(Number);
  return ['02', '71', ...bytes.map((byte) => byte.toString(16).padStart(2, '0'))].join(':');
}
