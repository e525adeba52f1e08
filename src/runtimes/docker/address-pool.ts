import ipaddr from 'ipaddr.js';

/** Default pool: 1024 networks of 61 instances each. The engine's own default pool is exhausted after about 31 networks. */
export const DEFAULT_POOL = '10.201.0.0/16';
/** Prefix length of an environment's network. */
const SUBNET_PREFIX = 26;

interface Range {
  first: number;
  last: number;
}

const toNumber = (address: string): number =>
  ipaddr.IPv4.parse(address)
    .toByteArray()
    .reduce((value, byte) => value * 256 + byte, 0);

const toAddress = (value: number): string =>
  [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join('.');

/** First and last address of an IPv4 network in CIDR notation; null for IPv6. */
function rangeOf(cidr: string): Range | null {
  if (!ipaddr.IPv4.isValidCIDR(cidr)) return null;
  const [address, prefix] = ipaddr.IPv4.parseCIDR(cidr);
  const size = 2 ** (32 - prefix);
  const first = Math.floor(toNumber(address.toString()) / size) * size;
  return { first, last: first + size - 1 };
}

const overlap = (one: Range, other: Range): boolean => one.first <= other.last && other.first <= one.last;

/** Throws if the text is not an IPv4 network that holds at least one environment's network. */
export function checkPool(pool: string): void {
  const range = rangeOf(pool);
  if (!range || range.last - range.first + 1 < 2 ** (32 - SUBNET_PREFIX))
    throw new Error(
      `Address pool ${pool}: must be an IPv4 network of /${SUBNET_PREFIX} or larger, such as ${DEFAULT_POOL}.`,
    );
}

/** Returns the lowest subnet of the pool that overlaps no network in use (CIDR; IPv6 is ignored); null if the pool is full. */
export function freeSubnet(pool: string, used: readonly string[], prefix = SUBNET_PREFIX): string | null {
  const range = rangeOf(pool)!;
  const taken = used.flatMap((cidr) => rangeOf(cidr) ?? []);
  const size = 2 ** (32 - prefix);
  for (let first = range.first; first + size - 1 <= range.last; first += size) {
    const subnet = { first, last: first + size - 1 };
    if (!taken.some((other) => overlap(subnet, other))) return `${toAddress(first)}/${prefix}`;
  }
  return null;
}

/**
 * Returns a free address of the subnet, or null if the subnet is full. The search starts after `after` and wraps around: a client that
 * still knows an address just released would reach the wrong instance if the address were reused at once. The first address is the
 * network's, the second its gateway's, the last its broadcast.
 */
export function freeAddress(subnet: string, taken: ReadonlySet<string>, after?: string): string | null {
  const range = rangeOf(subnet)!;
  const first = range.first + 2;
  const count = range.last - first;
  const start = after === undefined ? 0 : toNumber(after) - first + 1;
  for (let step = 0; step < count; step++) {
    const address = toAddress(first + ((start + step) % count));
    if (!taken.has(address)) return address;
  }
  return null;
}

/** Returns the networks that a machine has routes to, from the text of Linux' `/proc/net/route`; the default route is left out. */
export function parseRoutes(table: string): string[] {
  return table
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => fields[7] !== undefined && fields[7] !== '00000000')
    .map((fields) => `${littleEndian(fields[1]!)}/${prefixOf(fields[7]!)}`);
}

const littleEndian = (hex: string): string =>
  hex
    .match(/../g)!
    .reverse()
    .map((byte) => Number.parseInt(byte, 16))
    .join('.');

const prefixOf = (hex: string): number => Number.parseInt(hex, 16).toString(2).replaceAll('0', '').length;
