import { anySignal } from '#kernel/lease-signal.ts';
import { open } from 'node:fs/promises';
import type { IncomingMessage, RequestOptions } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isWithin, literalAddress } from '#kernel/addresses.ts';
import { request as requestHttp } from '#kernel/node-http.ts';
import { OutgoingError, outgoingError } from '#platform/http-client/errors.ts';
import { checkedLookup, parseUrl, refuseLiteral, unprotected, type Lookup } from '#platform/http-client/hosts.ts';

const DEFAULT_TIMEOUT_MS = 10_000;
const DEFAULT_MAX_BYTES = 1024 * 1024;
const MAX_HEADER_BYTES = 16 * 1024;

export interface OutgoingRequest {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'HEAD';
  headers?: Record<string, string>;
  body?: string | Buffer;
  /** Milliseconds for connecting, sending and the whole answer; 10 s if absent. */
  timeoutMs?: number;
  /** Bytes of the answer's body that are read; 1 MiB without. */
  maxBytes?: number;
  /** File that the body of a 2xx answer is written to instead; `body` is then empty. */
  saveTo?: string;
  /** True if any certificate is accepted: only if the owner of the server wants it so. */
  skipTlsVerification?: boolean;
  signal?: AbortSignal;
  /** True if the URL is a credential itself, as a chat's webhook is. Plain http carries it to the operator's networks only. */
  secretUrl?: boolean;
}

export interface OutgoingAnswer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: Buffer;
  /** True if the answer had more than `maxBytes`. */
  truncated: boolean;
}

/** Creates the function that sends requests to allowed addresses. */
export function createSender(resolve: Lookup, allowed: readonly string[]) {
  return async (address: string, request: OutgoingRequest): Promise<OutgoingAnswer> => {
    const url = parseUrl(address);
    const exposes = url.protocol === 'http:' && hasCredentials(request);
    // A literal address is connected to without any lookup.
    refuseLiteral(url.hostname, allowed);
    const literal = literalAddress(url.hostname);
    if (exposes && literal !== undefined && !isWithin(literal, allowed)) throw unprotected(url.host);
    return send(url, checkedLookup(resolve, allowed, exposes ? unprotected : undefined), request);
  };
}

/** Headers that carry credentials, of the systems that are called. */
const CREDENTIALS = /^(authorization|proxy-authorization|cookie|private-token|x-vault-token|x-auth-token|x-api-key)$/i;

const hasCredentials = ({ headers = {}, secretUrl = false }: OutgoingRequest): boolean =>
  secretUrl || Object.keys(headers).some((name) => CREDENTIALS.test(name));

async function send(url: URL, lookup: RequestOptions['lookup'], request: OutgoingRequest): Promise<OutgoingAnswer> {
  const timeoutMs = request.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  const deadline = AbortSignal.timeout(timeoutMs);
  const signal = request.signal ? anySignal([deadline, request.signal]) : deadline;
  let answer: IncomingMessage | undefined;
  try {
    answer = await answerTo(url, { lookup, signal }, request);
    const maxBytes = request.maxBytes ?? DEFAULT_MAX_BYTES;
    const status = answer.statusCode!;
    const { body, truncated } =
      request.saveTo !== undefined && status >= 200 && status < 300
        ? await saveBounded(answer, request.saveTo, maxBytes)
        : await readBounded(answer, request.saveTo === undefined ? maxBytes : DEFAULT_MAX_BYTES);
    return { status, headers: answer.headers, body, truncated };
  } catch (error) {
    if (deadline.aborted)
      throw new OutgoingError('timeout', `${url.host} did not answer within ${timeoutMs} ms.`, error);
    request.signal?.throwIfAborted();
    throw outgoingError(error, url.host);
  } finally {
    answer?.destroy();
  }
}

/**
 * Sends the request and returns the head of the answer. Each request has its own connection: a kept one would outlive the check of its
 * address. Uses Node's own client, because no answer may end the process: undici 7 throws an uncatchable error when a server hangs up
 * while its answer is held back.
 */
function answerTo(
  url: URL,
  options: Pick<RequestOptions, 'lookup' | 'signal'>,
  { method = 'GET', headers = {}, body, skipTlsVerification = false }: OutgoingRequest,
): Promise<IncomingMessage> {
  const start = url.protocol === 'https:' ? requestHttps : requestHttp;
  return new Promise((resolve, reject) => {
    const rest = { agent: false, maxHeaderSize: MAX_HEADER_BYTES, rejectUnauthorized: !skipTlsVerification } as const;
    const sent = start(url, { ...options, method, headers, ...rest });
    sent.once('response', resolve);
    // No other protocol was asked for: the connection is closed.
    sent.once('upgrade', (answer, socket) => {
      socket.destroy();
      reject(new Error(`it changed its protocol to ${answer.headers.upgrade}`));
    });
    sent.on('error', reject);
    sent.once('close', () => reject(new Error('the connection was closed without an answer')));
    sent.end(body);
  });
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
