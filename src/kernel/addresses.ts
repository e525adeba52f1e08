import ipaddr from 'ipaddr.js';

/** Public by its number, but answered by the machine's own cloud: Azure's metadata and agent service. */
const METADATA = ['168.63.129.16'];

/** Range of IPv6 addresses that the internet routes; all others are special or unassigned. */
const GLOBAL_IPV6 = ipaddr.parseCIDR('2000::/3');

/**
 * Returns whether an address may not be called on a user's behalf: everything but public unicast addresses, so loopback, link-local
 * (where clouds have their metadata), private, shared (CGNAT), multicast, reserved and translated ones (NAT64, 6to4, Teredo),
 * unless a network in `allowed` (CIDR) holds it. IPv4-mapped IPv6 counts as the IPv4 address. What is no address is forbidden.
 */
export function isForbiddenAddress(address: string, allowed: readonly string[]): boolean {
  if (!ipaddr.isValid(address)) return true;
  const parsed = ipaddr.process(address);
  if (allowed.some((network) => contains(network, parsed))) return false;
  if (parsed.range() !== 'unicast') return true;
  return parsed.kind() === 'ipv6' ? !parsed.match(GLOBAL_IPV6) : METADATA.includes(parsed.toString());
}

function contains(network: string, address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  const [base, bits] = ipaddr.parseCIDR(network);
  return base.kind() === address.kind() && address.match([base, bits]);
}

/** Returns the address in a URL's host (`[::1]`, `127.0.0.1`), or undefined for a name. */
export function literalAddress(hostname: string): string | undefined {
  const bare = hostname.replace(/^\[(.*)\]$/, '$1');
  return ipaddr.isValid(bare) ? bare : undefined;
}

/** Returns an address as people write it: IPv4 mapped into IPv6 (`::ffff:192.0.2.1`) as IPv4. */
export const clientAddress = (address: string): string =>
  address.startsWith('::ffff:') && address.includes('.') ? address.slice('::ffff:'.length) : address;

/** Returns whether one of the networks (CIDR, or single addresses) contains an address. Text that is no address is in none. */
export function isWithin(address: string, networks: readonly string[]): boolean {
  if (networks.length === 0 || !ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  return networks.some((network) => {
    if (network.includes('/')) return contains(network, parsed);
    return ipaddr.process(network).toString() === parsed.toString();
  });
}

/**
 * Address of the client of a request: the peer's, unless the peer is a trusted proxy. Then the last address in
 * `X-Forwarded-For` that is no trusted proxy's, because everything before it is the client's own word.
 */
export function addressOfClient(
  peer: string | undefined,
  forwardedFor: string | string[] | undefined,
  trusted: readonly string[],
): string | undefined {
  if (peer === undefined || !isWithin(peer, trusted)) return peer;
  const chain = [forwardedFor ?? []].flat().join(',').split(',');
  let client = peer;
  for (const hop of chain.map((part) => part.trim()).toReversed()) {
    // What is no address says nothing about those before it.
    if (!ipaddr.isValid(hop)) return client;
    client = hop;
    if (!isWithin(hop, trusted)) return client;
  }
  return client;
}
