import { isWithin, literalAddress } from '#kernel/addresses.ts';
import { invalidField } from '#kernel/errors.ts';
import { OutgoingError } from '#platform/http-client/index.ts';
import { canonicalHost, refuseLiteral } from '#platform/http-client/hosts.ts';

/** Ports of mail servers. Others would let users probe any service of the internet. */
const PORTS = new Set([25, 465, 587, 2525]);

/** Port on which TLS comes before the first word of SMTP. */
export const TLS_PORT = 465;

/** Server that takes mail. */
export interface MailServer {
  /** Name or literal address; IPv6 without brackets. */
  host: string;
  port: number;
  /** True if TLS comes before the first word of SMTP; unless it is said, where the port is 465. */
  isTls?: boolean;
  /** True if a server without TLS gets no mail. */
  requireTls: boolean;
  /** Login, which a server gets over TLS only. */
  login: { username: string; password: string } | null;
}

/** Returns host and port of `host:port`, `[::1]:25` for IPv6. Throws OutgoingError for another form. */
export function parseSmarthost(text: string): Pick<MailServer, 'host' | 'port'> {
  const found = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+):([0-9]{1,5})$/i.exec(text);
  const port = Number(found?.[2]);
  if (!found || port < 1 || port > 65_535)
    throw new OutgoingError('invalid_url', 'must be host:port, such as smtp.example.com:587');
  return { host: canonicalHost(found[1]!).replace(/^\[(.*)\]$/, '$1'), port };
}

/** Throws 400 naming the field for a server that can never be called: a forbidden address, or a port that is not for mail. */
export function checkSmarthost(text: string, field: string, allowedPrivateAddresses: readonly string[]): void {
  try {
    refuseServer(parseSmarthost(text), allowedPrivateAddresses);
  } catch (error) {
    throw error instanceof OutgoingError ? invalidField(field, error.message) : error;
  }
}

/** Throws OutgoingError for a server that is refused before its name is resolved. */
export function refuseServer({ host, port }: Pick<MailServer, 'host' | 'port'>, allowed: readonly string[]): void {
  refuseLiteral(host, allowed);
  if (!needsOwnAddress(port)) return;
  const literal = literalAddress(host);
  // What a name leads to is known when it is connected to.
  if (literal === undefined ? allowed.length === 0 : !isWithin(literal, allowed)) throw foreignPort(host, port);
}

/** Returns whether only the operator's own addresses may be called at a port. */
export const needsOwnAddress = (port: number): boolean => !PORTS.has(port);

export const foreignPort = (host: string, port: number): OutgoingError =>
  new OutgoingError(
    'forbidden_address',
    `the port must be 25, 465, 587 or 2525: ${host}:${port} is not called; other ports are for addresses that the setting QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES names`,
  );
