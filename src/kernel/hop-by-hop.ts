import type { IncomingHttpHeaders } from 'node:http';

/** Header fields of one connection, which a proxy does not forward (RFC 9110 §7.6.1); those that frame a message are left to its caller. */
export const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'upgrade',
];

/** Returns headers without the hop-by-hop ones, those that `Connection` names, and `others`. */
export function endToEnd(headers: IncomingHttpHeaders, others: readonly string[] = []): IncomingHttpHeaders {
  const named = (headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase());
  const left = new Set([...HOP_BY_HOP, ...named, ...others]);
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !left.has(name)));
}
