import { connect as connectPlain, isIP, type Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import { Pool, type Dispatcher } from 'undici';
import { WebSocket } from 'ws';
import { anySignal } from '#kernel/lease-signal.ts';
import type { ClusterAccess } from '#runtimes/runtime.ts';
import type { AddressPolicy } from './access.ts';
import { ApiError, TooLargeError } from './errors.ts';

/** Milliseconds for one call from connecting to the last byte of its answer, or for the head of a stream. */
const CALL_MS = 20_000;
const CONNECT_MS = 5_000;
/** Milliseconds that calls under way get when the connection is closed. */
const CLOSE_MS = 2_000;
/** Connections to one cluster; streams of logs and watches take one each. */
const MOST_CONNECTIONS = 128;
/** Longest answer that is read: it is parsed in one turn of the event loop. A page of objects has less, and an object at most 1.5 MiB. */
const MOST_BYTES = 3 * 2 ** 20;

/** Request whose bytes are passed on as they are. */
export interface RawCall {
  headers: Record<string, string | string[]>;
  body: Buffer;
  signal: AbortSignal;
}

export interface Call {
  /** Replaces headers and body. */
  raw?: RawCall;
  body?: unknown;
  /** Type of the body; `application/json` without. */
  type?: string;
  query?: Record<string, string | number | boolean>;
  /** Form of the answer; `application/json` without. */
  accept?: string;
  signal?: AbortSignal;
}

export interface ConnectionOptions {
  access: ClusterAccess;
  policy: AddressPolicy;
  /** Returns how the cluster is reached now; asked when it refuses the credentials, which may have been replaced. Null if it is gone. */
  renewed?(): Promise<ClusterAccess | null>;
  /** Milliseconds for one call. */
  callMs?: number;
}

/** Connection to the API server of a cluster. Every call ends in time, whatever the server does. */
export class Connection {
  readonly #policy: AddressPolicy;
  readonly #renewed: () => Promise<ClusterAccess | null>;
  readonly #callMs: number;
  #access: ClusterAccess;
  #url: URL;
  #pool: Pool;

  constructor({ access, policy, renewed = async () => null, callMs = CALL_MS }: ConnectionOptions) {
    this.#policy = policy;
    this.#renewed = renewed;
    this.#callMs = callMs;
    this.#access = access;
    this.#url = new URL(access.server);
    this.#pool = this.#makePool();
  }

  /** Uses another address or other credentials from the next call on; what is under way ends with the former ones. */
  use(access: ClusterAccess): void {
    const old = this.#pool;
    this.#access = access;
    this.#url = new URL(access.server);
    this.#pool = this.#makePool();
    void old.close();
  }

  #makePool(): Pool {
    return new Pool(this.#url.origin, {
      connections: MOST_CONNECTIONS,
      keepAliveTimeout: 30_000,
      connect: (_options, callback) => {
        this.#dial().then(
          (socket) => callback(null, socket),
          (error: Error) => callback(error, null),
        );
      },
    });
  }

  /** Sends a request and returns the parsed answer. Throws ApiError for an answer that is no success. */
  async call<T>(method: Dispatcher.HttpMethod, path: string, call: Call = {}): Promise<T> {
    const timeout = AbortSignal.timeout(this.#callMs);
    const signal = call.signal ? anySignal([call.signal, timeout]) : timeout;
    const answer = await this.#send(method, path, { ...call, signal });
    const text = await readText(answer.body, `${method} ${path}`);
    if (answer.statusCode >= 300) throw refusalOf(answer.statusCode, text);
    return JSON.parse(text) as T;
  }

  get<T>(path: string, call: Call = {}): Promise<T> {
    return this.call<T>('GET', path, call);
  }

  /** Opens a stream of bytes, such as a followed log. The signal ends it. Throws ApiError for an answer that is no success. */
  async stream(path: string, call: Call & { signal: AbortSignal }): Promise<Readable> {
    const head = AbortSignal.timeout(this.#callMs);
    const begun = new AbortController();
    const late = () => begun.abort(head.reason);
    head.addEventListener('abort', late);
    try {
      const signal = anySignal([call.signal, begun.signal]);
      const answer = await this.#send('GET', path, { ...call, signal });
      if (answer.statusCode >= 300) throw refusalOf(answer.statusCode, await readText(answer.body, `GET ${path}`));
      return answer.body;
    } finally {
      head.removeEventListener('abort', late);
    }
  }

  /** Passes a request on and returns the answer unread, whatever its status; `path` may have a query. The caller decides what it lets through. */
  forward(method: Dispatcher.HttpMethod, path: string, raw: RawCall): Promise<Dispatcher.ResponseData> {
    return this.#send(method, path, { raw, signal: raw.signal });
  }

  /** Opens a web socket, such as that of a program in a pod. The caller ends it. */
  async socket(path: string, query: URLSearchParams, protocols: string[]): Promise<WebSocket> {
    const url = new URL(`${this.#url.pathname.replace(/\/$/, '')}${path}?${query}`, this.#url);
    url.protocol = this.#url.protocol === 'https:' ? 'wss:' : 'ws:';
    const connection = await this.#dial();
    return new WebSocket(url, protocols, {
      headers: this.#headers(),
      handshakeTimeout: this.#callMs,
      // Already connected, and the certificate verified.
      createConnection: () => connection,
      maxPayload: MOST_BYTES,
    });
  }

  /** Lets what is under way end for a moment, then ends all connections. */
  async close(): Promise<void> {
    const late = new Promise<void>((resolve) => setTimeout(resolve, CLOSE_MS).unref());
    await Promise.race([this.#pool.close(), late]);
    await this.#pool.destroy();
  }

  /** Sends a request, once more with the present credentials where the former ones are refused. */
  async #send(method: Dispatcher.HttpMethod, path: string, call: Call): Promise<Dispatcher.ResponseData> {
    const answer = await this.#sendOnce(method, path, call);
    if (answer.statusCode !== 401) return answer;
    const access = await this.#renewed();
    if (access === null || isDeepStrictEqual(access, this.#access)) return answer;
    await answer.body.dump();
    this.use(access);
    return this.#sendOnce(method, path, call);
  }

  #sendOnce(method: Dispatcher.HttpMethod, path: string, call: Call): Promise<Dispatcher.ResponseData> {
    const query = new URLSearchParams(Object.entries(call.query ?? {}).map(([key, value]) => [key, String(value)]));
    const prefix = this.#url.pathname.replace(/\/$/, '');
    return this.#pool.request({
      method,
      path: `${prefix}${path}${query.size > 0 ? `?${query}` : ''}`,
      headers: {
        ...(call.raw?.headers ?? { accept: 'application/json' }),
        ...this.#headers(),
        ...(call.accept === undefined ? {} : { accept: call.accept }),
        ...(call.body === undefined ? {} : { 'content-type': call.type ?? 'application/json' }),
      },
      body: bytesOf(call),
      signal: call.signal ?? null,
      headersTimeout: this.#callMs,
      // Streams may be silent for long; calls have their own signal.
      bodyTimeout: 0,
    });
  }

  #headers(): Record<string, string> {
    return {
      'user-agent': 'quarterdeck',
      ...(this.#access.token === null ? {} : { authorization: `Bearer ${this.#access.token}` }),
    };
  }

  /** Connects to the operator's address, or to one that the policy allows. A name cannot lead elsewhere in between. */
  async #dial(): Promise<Socket> {
    const host = this.#url.hostname.replace(/^\[|\]$/g, '');
    const isTls = this.#url.protocol === 'https:';
    const port = Number(this.#url.port || (isTls ? 443 : 80));
    const addresses = this.#access.isOperators ? [host] : await this.#policy(host);
    let failure: unknown;
    for (const address of addresses) {
      try {
        return await this.#dialAddress(address, host, port, isTls);
      } catch (error) {
        failure = error;
      }
    }
    throw failure;
  }

  async #dialAddress(address: string, host: string, port: number, isTls: boolean): Promise<Socket> {
    const { serverName, authorities, insecure, certificate } = this.#access;
    const name = serverName ?? host;
    const socket = isTls
      ? connectTls({
          host: address,
          port,
          // A name of TLS is never an address; the certificate is checked against the address all the same.
          ...(isIP(name) ? {} : { servername: name }),
          ALPNProtocols: ['http/1.1'],
          rejectUnauthorized: !insecure,
          ...(authorities === null ? {} : { ca: authorities }),
          ...(certificate === null ? {} : { cert: certificate.certificate, key: certificate.key }),
        })
      : connectPlain({ host: address, port });
    await connected(socket, isTls ? 'secureConnect' : 'connect');
    return socket;
  }
}

function bytesOf({ raw, body }: Call): Buffer | string | null {
  if (raw) return raw.body.length === 0 ? null : raw.body;
  return body === undefined ? null : JSON.stringify(body);
}

function connected(socket: Socket, event: 'connect' | 'secureConnect'): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => {
      clearTimeout(timer);
      socket.destroy();
      reject(error);
    };
    const timer = setTimeout(() => fail(new Error(`no connection within ${CONNECT_MS / 1000} s`)), CONNECT_MS);
    socket.once('error', fail);
    socket.once(event, () => {
      clearTimeout(timer);
      socket.off('error', fail);
      resolve();
    });
  });
}

async function readText(body: Readable, call: string): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of body as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > MOST_BYTES) throw new TooLargeError(call, MOST_BYTES);
    parts.push(part);
  }
  return Buffer.concat(parts).toString();
}

function refusalOf(status: number, text: string): ApiError {
  let told: { reason?: unknown; message?: unknown } = {};
  try {
    told = JSON.parse(text) as typeof told;
  } catch {
    // Something before the API server answered, such as a load balancer.
  }
  const reason = typeof told.reason === 'string' ? told.reason : '';
  const message = typeof told.message === 'string' ? told.message : `it answered with status ${status}`;
  return new ApiError(status, reason, `${message.slice(0, 1000)}.`.replace(/\.\.$/, '.'));
}
