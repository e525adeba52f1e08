import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';

/** Headers that belong to one connection (RFC 9110 §7.6.1), and those that only the proxy may say. */
const NOT_FORWARDED = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
  'http2-settings',
  'forwarded',
  'x-real-ip',
]);

const PLAIN_CONNECTION = /^(keep-alive|close|upgrade)$/i;

/** Further headers that `Connection` declares to be of this connection only. */
function namedByConnection(connection: string | string[] | undefined): string[] {
  if (connection === undefined || (typeof connection === 'string' && PLAIN_CONNECTION.test(connection))) return [];
  return String(connection)
    .split(',')
    .map((name) => name.trim().toLowerCase());
}

/** Where a request came in, as far as the upstream is told. */
export interface Arrival {
  /** As the client wrote it, perhaps with a port. */
  host: string;
  proto: 'http' | 'https';
  socket: Pick<Socket, 'remoteAddress' | 'localPort'>;
}

/**
 * Headers for the upstream, name and value in turn: those of the client without what belongs to its connection, with
 * `X-Forwarded-For`, `-Proto`, `-Host` and `-Port` of our own in place of the client's.
 */
export function forwardedHeaders(given: IncomingHttpHeaders, { host, proto, socket }: Arrival): string[] {
  const headers: string[] = [];
  const named = namedByConnection(given.connection);
  for (const name in given) {
    if (NOT_FORWARDED.has(name) || name.startsWith('x-forwarded-') || name.startsWith(':') || named.includes(name))
      continue;
    const value = given[name];
    if (typeof value === 'string') headers.push(name, value);
    else if (value) for (const part of value) headers.push(name, part);
  }
  const client = clientAddress(socket.remoteAddress);
  headers.push('x-forwarded-for', client, 'x-forwarded-proto', proto, 'x-forwarded-host', host);
  headers.push('x-forwarded-port', String(socket.localPort ?? ''));
  return headers;
}

/** The address of a client as the upstream is told it: one of IPv4 as such. */
export const clientAddress = (remoteAddress = ''): string =>
  remoteAddress.startsWith('::ffff:') ? remoteAddress.slice('::ffff:'.length) : remoteAddress;
