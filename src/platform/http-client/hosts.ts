import { lookup as lookUp, type LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { promisify } from 'node:util';
import { isForbiddenAddress, isWithin, literalAddress } from '#kernel/addresses.ts';
import { OutgoingError, outgoingError } from '#platform/http-client/errors.ts';

/** Addresses of a name, as `dns.lookup` with `all` answers them. */
export type Lookup = (hostname: string, options: { family?: number | 'IPv4' | 'IPv6' }) => Promise<LookupAddress[]>;

const lookUpAll = promisify(lookUp);

/** Resolves names as the system does. */
export const systemLookup: Lookup = (hostname, { family = 0 }) => lookUpAll(hostname, { all: true, family });

/** Returns the addresses of a name. Throws OutgoingError if there are none. */
export async function resolveHost(
  resolve: Lookup,
  hostname: string,
  family?: number | 'IPv4' | 'IPv6',
): Promise<LookupAddress[]> {
  let found: LookupAddress[];
  try {
    found = await resolve(hostname, family === undefined ? {} : { family });
  } catch (error) {
    throw outgoingError(error, hostname);
  }
  if (found.length === 0) throw new OutgoingError('unknown_host', `The name ${hostname} does not resolve.`);
  return found;
}

/** Parses an absolute http or https URL without credentials. Throws OutgoingError. */
export function parseUrl(text: string): URL {
  if (!URL.canParse(text)) throw new OutgoingError('invalid_url', 'must be an absolute http or https URL');
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new OutgoingError('invalid_url', 'must be an http or https URL');
  if (url.username !== '' || url.password !== '')
    throw new OutgoingError('invalid_url', 'must not carry a user name or password');
  return url;
}

/** Spellings such as `0x7f.1`, `2130706433` or `127.1` as the address that they mean. */
export function canonicalHost(host: string): string {
  const bracketed = host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
  const url = `http://${bracketed}/`;
  if (!URL.canParse(url)) throw new OutgoingError('invalid_url', `${host} is not a host name.`);
  return new URL(url).hostname;
}

/** Throws OutgoingError for a host that is a forbidden address itself. */
export function refuseLiteral(hostname: string, allowed: readonly string[]): void {
  const literal = literalAddress(hostname);
  if (literal !== undefined && isForbiddenAddress(literal, allowed)) throw forbidden(hostname, literal);
}

/** Refuses an address. What a name resolves to is left out: it would tell users the addresses of private names. */
export const forbidden = (host: string, address: string): OutgoingError =>
  new OutgoingError(
    'forbidden_address',
    `${host} ${host === address ? 'is' : 'leads to'} a private, local or reserved address, which may not be called; ` +
      'the setting QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES can allow it',
  );

/** Refuses to send credentials over http. */
export const unprotected = (host: string): OutgoingError =>
  new OutgoingError(
    'invalid_url',
    `Credentials are not sent to ${host} over http, where others can read them: use https. Over http they go only to addresses that the setting QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES names`,
  );

/**
 * Returns a lookup that answers only addresses resolved and allowed for this very connection. With `refusal`, only the operator's own
 * addresses are allowed, and it makes the error for others.
 */
export function checkedLookup(
  resolve: Lookup,
  allowed: readonly string[],
  refusal?: (host: string) => OutgoingError,
): LookupFunction {
  return (hostname, options, callback) => {
    const family = options.family === undefined || options.family === 0 ? undefined : options.family;
    resolveHost(resolve, hostname, family).then(
      (found: LookupAddress[]) => {
        const good = found.filter(({ address }) => !isForbiddenAddress(address, allowed));
        if (good.length === 0) return callback(forbidden(hostname, found[0]!.address), []);
        const safe = refusal ? good.filter(({ address }) => isWithin(address, allowed)) : good;
        if (safe.length === 0) return callback(refusal!(hostname), []);
        if (options.all) return callback(null, safe);
        callback(null, safe[0]!.address, safe[0]!.family);
      },
      (error: Error) => callback(error, []),
    );
  };
}
