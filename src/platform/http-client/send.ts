import { open } from 'node:fs/promises';
import { buildConnector, Client } from 'undici';
import { isForbiddenAddress } from '#platform/http-client/addresses.ts';
import { OutgoingError, outgoingError } from '#platform/http-client/errors.ts';
import { forbidden, parseUrl, refuseLiteral, resolveHost, type Lookup } from '#platform/http-client/hosts.ts';

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
  /** File that the body of a 2xx answer is written to instead; `body` is then empty. */
  saveTo?: string;
  signal?: AbortSignal;
}

export interface OutgoingAnswer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: Buffer;
  /** Whether there was more than `maxBytes`. */
  truncated: boolean;
}

/** What sends requests to allowed addresses. Only to be loaded by http-client/index.ts. */
export function createSender(resolve: Lookup, allowed: readonly string[]) {
  const connect = checkedConnector(resolve, allowed);
  return (url: string, request: OutgoingRequest) => send(connect, url, request);
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
    const maxBytes = request.maxBytes ?? DEFAULT_MAX_BYTES;
    const isSaved = request.saveTo !== undefined && answer.statusCode >= 200 && answer.statusCode < 300;
    const { body, truncated } = isSaved
      ? await saveBounded(answer.body, request.saveTo!, maxBytes)
      : await readBounded(answer.body, request.saveTo === undefined ? maxBytes : DEFAULT_MAX_BYTES);
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

async function saveBounded(
  stream: AsyncIterable<Buffer>,
  file: string,
  maxBytes: number,
): Promise<{ body: Buffer; truncated: boolean }> {
  const body = Buffer.alloc(0);
  let size = 0;
  await using target = await open(file, 'w', 0o600);
  for await (const chunk of stream) {
    size += chunk.length;
    if (size > maxBytes) return { body, truncated: true };
    await target.writeFile(chunk);
  }
  return { body, truncated: false };
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
