import { lookup as systemLookup, type LookupAddress } from 'node:dns';
import { promisify } from 'node:util';
import { buildConnector, Client } from 'undici';
import { invalidField } from '#kernel/errors.ts';
import { isForbiddenAddress, literalAddress } from '#platform/http-client/addresses.ts';
import { OutgoingError, outgoingError } from '#platform/http-client/errors.ts';

export { isForbiddenAddress } from '#platform/http-client/addresses.ts';
export { OutgoingError, type OutgoingFailure } from '#platform/http-client/errors.ts';

const DEFAULT_TIMEOUT_MS = 10_000;
const DEFAULT_MAX_BYTES = 1024 * 1024;
const MAX_HEADER_BYTES = 16 * 1024;

export interface OutgoingRequest {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'HEAD';
  headers?: Record<string, string>;
  body?: string | Buffer;
  /** For all of it: connecting, sending, and the whole answer. 10 s without. */
  timeoutMs?: number;
  /** Bytes of the answer's body that are read; 1 MiB without. */
  maxBytes?: number;
  signal?: AbortSignal;
}

export interface OutgoingAnswer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: Buffer;
  /** Whether there was more than `maxBytes`. */
  truncated: boolean;
}

/** Addresses of a name, as `dns.lookup` with `all` answers them. */
export type Lookup = (hostname: string, options: { family?: number | 'IPv4' | 'IPv6' }) => Promise<LookupAddress[]>;

/** Calls URLs that users gave. */
export interface HttpClient {
  /**
   * One request. Redirects are answered, not followed; certificates are verified; the address is checked when the
   * connection is made, so that a name cannot change in between. Any status is an answer; throws OutgoingError for none.
   */
  request(url: string, request?: OutgoingRequest): Promise<OutgoingAnswer>;
  /** The exported `checkUrl` with this client's networks. */
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

/** Throws 400 naming the field for a URL that can never be called: not http(s), or a forbidden address in it. */
export function checkUrl(url: string, field: string, allowedPrivateAddresses: readonly string[]): void {
  try {
    refuseLiteral(parseUrl(url).hostname, allowedPrivateAddresses);
  } catch (error) {
    throw error instanceof OutgoingError ? invalidField(field, error.message) : error;
  }
}

const resolveBySystem = promisify(systemLookup);

/** The client for URLs that users give. */
export function createHttpClient(options: HttpClientOptions): HttpClient {
  const allowed = options.allowedPrivateAddresses;
  const resolve: Lookup =
    options.lookup ?? ((hostname, { family }) => resolveBySystem(hostname, { all: true, family: family ?? 0 }));
  const connect = checkedConnector(resolve, allowed);
  return {
    request: (url, request = {}) => send(connect, url, request),
    checkUrl: (url, field) => checkUrl(url, field, allowed),
    addressPolicy: async (host) => {
      const literal = literalAddress(canonicalHost(host));
      const addresses = literal ? [literal] : (await resolveHost(resolve, host)).map(({ address }) => address);
      for (const address of addresses) if (isForbiddenAddress(address, allowed)) throw forbidden(host, address);
      return addresses;
    },
  };
}

async function send(
  connect: buildConnector.connector,
  address: string,
  request: OutgoingRequest,
): Promise<OutgoingAnswer> {
  const url = parseUrl(address);
  const timeoutMs = request.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  const deadline = AbortSignal.timeout(timeoutMs);
  const signal = request.signal ? AbortSignal.any([deadline, request.signal]) : deadline;
  // A connection for each request: a kept one would outlive what its address was checked for.
  const client = new Client(url.origin, { connect, pipelining: 0, maxHeaderSize: MAX_HEADER_BYTES });
  try {
    const answer = await client.request({
      method: request.method ?? 'GET',
      path: `${url.pathname}${url.search}`,
      headers: request.headers ?? {},
      body: request.body ?? null,
      signal,
    });
    const { body, truncated } = await readBounded(answer.body, request.maxBytes ?? DEFAULT_MAX_BYTES);
    return { status: answer.statusCode, headers: answer.headers, body, truncated };
  } catch (error) {
    if (deadline.aborted)
      throw new OutgoingError('timeout', `${url.host} did not answer within ${timeoutMs} ms.`, error);
    request.signal?.throwIfAborted();
    throw outgoingError(error, url.host);
  } finally {
    await client.destroy();
  }
}

async function readBounded(
  stream: AsyncIterable<Buffer>,
  maxBytes: number,
): Promise<{ body: Buffer; truncated: boolean }> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > maxBytes) return { body: Buffer.concat(chunks).subarray(0, maxBytes), truncated: true };
  }
  return { body: Buffer.concat(chunks), truncated: false };
}

/** Connects only to addresses that were resolved and allowed in this very connection. */
function checkedConnector(resolve: Lookup, allowed: readonly string[]): buildConnector.connector {
  const connect = buildConnector({
    lookup: (hostname, options, callback) => {
      resolveHost(resolve, hostname, options.family).then(
        (found) => {
          const good = found.filter(({ address }) => !isForbiddenAddress(address, allowed));
          if (good.length === 0) return callback(forbidden(hostname, found[0]!.address), []);
          if (options.all) return callback(null, good);
          callback(null, good[0]!.address, good[0]!.family);
        },
        (error: Error) => callback(error, []),
      );
    },
  } as buildConnector.BuildOptions);
  return (target, callback) => {
    try {
      refuseLiteral(target.hostname, allowed); // A literal address is connected to without any lookup.
    } catch (error) {
      return callback(error as Error, null);
    }
    connect(target, callback);
  };
}

async function resolveHost(
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

function parseUrl(text: string): URL {
  if (!URL.canParse(text)) throw new OutgoingError('invalid_url', 'must be an absolute http or https URL');
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new OutgoingError('invalid_url', 'must be an http or https URL');
  if (url.username !== '' || url.password !== '')
    throw new OutgoingError('invalid_url', 'must not carry a user name or password');
  return url;
}

/** Spellings such as `0x7f.1`, `2130706433` or `127.1` as the address that they mean. */
function canonicalHost(host: string): string {
  const bracketed = host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
  const url = `http://${bracketed}/`;
  if (!URL.canParse(url)) throw new OutgoingError('invalid_url', `${host} is not a host name.`);
  return new URL(url).hostname;
}

function refuseLiteral(hostname: string, allowed: readonly string[]): void {
  const literal = literalAddress(hostname);
  if (literal !== undefined && isForbiddenAddress(literal, allowed)) throw forbidden(hostname, literal);
}

const forbidden = (host: string, address: string): OutgoingError =>
  new OutgoingError(
    'forbidden_address',
    `${host === address ? host : `${host} (${address})`} is a private, local or reserved address, which may not be called; ` +
      'the setting QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES can allow it',
  );
