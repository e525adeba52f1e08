import { invalidField } from '#kernel/errors.ts';
import { isForbiddenAddress, literalAddress } from '#kernel/addresses.ts';
import { OutgoingError } from '#platform/http-client/errors.ts';
import {
  canonicalHost,
  forbidden,
  parseUrl,
  refuseLiteral,
  resolveHost,
  systemLookup,
  type Lookup,
} from '#platform/http-client/hosts.ts';
import { createSender, type OutgoingAnswer, type OutgoingRequest } from '#platform/http-client/send.ts';

export { isForbiddenAddress } from '#kernel/addresses.ts';
export type { Lookup } from '#platform/http-client/hosts.ts';
export type { OutgoingAnswer, OutgoingRequest } from '#platform/http-client/send.ts';
export { requestFollowing } from '#platform/http-client/redirect.ts';
export { OutgoingError } from '#platform/http-client/errors.ts';

/** Calls URLs that users gave. */
export interface HttpClient {
  /**
   * Sends one request. Redirects are answered, not followed; certificates are verified; the address is checked when the connection is made,
   * so that a name cannot change in between. Any status is an answer; throws OutgoingError for none.
   */
  request(url: string, request?: OutgoingRequest): Promise<OutgoingAnswer>;
  /** Checks a URL like the exported `checkUrl`, with this client's networks. */
  checkUrl(url: string, field: string): void;
  /**
   * The addresses of a host that may be connected to, for programs that connect by themselves. Throws OutgoingError if
   * any of them is forbidden.
   */
  addressPolicy(host: string): Promise<string[]>;
}

export interface HttpClientOptions {
  /** Networks (CIDR) that may be called although private: `settings.allowedPrivateAddresses`. */
  allowedPrivateAddresses: readonly string[];
  /** Resolver; the system's without. */
  lookup?: Lookup;
}

/** Throws 400 naming the field for a URL that can never be called: another scheme than http(s), or a forbidden address. */
export function checkUrl(url: string, field: string, allowedPrivateAddresses: readonly string[]): void {
  try {
    refuseLiteral(parseUrl(url).hostname, allowedPrivateAddresses);
  } catch (error) {
    throw error instanceof OutgoingError ? invalidField(field, error.message) : error;
  }
}

/** Checks a URL like `checkUrl` and refuses plain http as well: for URLs that credentials are sent to or that are credentials. */
export function checkProtectedUrl(url: string, field: string, allowedPrivateAddresses: readonly string[]): void {
  checkUrl(url, field, allowedPrivateAddresses);
  if (!isProtected(url, allowedPrivateAddresses))
    throw invalidField(
      field,
      'must begin with https://; http:// is for addresses in QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES, such as http://10.0.0.5:8200',
    );
}

/** Returns whether credentials may be sent to a URL: over TLS, or to a literal private address that the operator allows. */
export function isProtected(url: string, allowedPrivateAddresses: readonly string[]): boolean {
  const { protocol, hostname } = parseUrl(url);
  if (protocol === 'https:') return true;
  const literal = literalAddress(canonicalHost(hostname));
  return (
    literal !== undefined && isForbiddenAddress(literal, []) && !isForbiddenAddress(literal, allowedPrivateAddresses)
  );
}

/** Creates the client for URLs that users give. */
export function createHttpClient(options: HttpClientOptions): HttpClient {
  const allowed = options.allowedPrivateAddresses;
  const resolve = options.lookup ?? systemLookup;
  const send = createSender(resolve, allowed);
  return {
    request: (url, request = {}) => send(url, request),
    checkUrl: (url, field) => checkUrl(url, field, allowed),
    addressPolicy: async (host) => {
      const literal = literalAddress(canonicalHost(host));
      const addresses = literal ? [literal] : (await resolveHost(resolve, host)).map(({ address }) => address);
      for (const address of addresses) if (isForbiddenAddress(address, allowed)) throw forbidden(host, address);
      return addresses;
    },
  };
}
