import { closeSync, constants, openSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { request } from '#kernel/node-http.ts';
import { RuntimeError } from '#runtimes/runtime.ts';

/** Name of the admin API's socket in the adapter's folder. */
export const ADMIN_SOCKET = 'admin';
/** Host name for requests to the admin API; it refuses every other. */
export const ADMIN_HOST = 'localhost';
/** Milliseconds for one answer. A configuration with thousands of routes takes a second. */
const TIMEOUT_MS = 30_000;

interface AdminRequest {
  body?: object;
  headers?: Record<string, string>;
  timeoutMs: number;
}

interface AdminAnswer {
  status: number;
  body: string;
  etag: string | undefined;
}

/** Number of requests under way to an upstream, as Caddy counts them. */
export interface UpstreamCount {
  address: string;
  num_requests: number;
}

/** Present configuration of Caddy, as far as needed to not overwrite the change of another process. */
export interface PresentConfig {
  /** Value of `If-Match` for a change. */
  etag: string;
  /** `@id` of the admin object: differs between all loaded configurations. */
  revision: string;
}

/** Returns whether a request failed because no Caddy answers in the folder at the moment. */
export const isAway = (error: unknown): boolean =>
  ['ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE'].includes((error as NodeJS.ErrnoException).code ?? '');

/** Client of Caddy's JSON admin API on its unix socket. Every method throws the error of the socket (`isAway`) or RuntimeError `failed`. */
export class AdminApi {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  async present(): Promise<PresentConfig> {
    const { body, etag } = await this.#ok('GET', '/config/admin');
    const revision = (JSON.parse(body) as { '@id'?: string } | null)?.['@id'];
    if (etag === undefined || revision === undefined)
      throw new RuntimeError('failed', 'The running Caddy has a configuration that Quarterdeck did not write.');
    return { etag, revision };
  }

  /** Replaces the whole configuration; returns false if another change came first. */
  async replace(config: object, present: PresentConfig): Promise<boolean> {
    const headers = { 'if-match': present.etag };
    const answer = await this.#exchange('POST', '/config/', { body: config, headers, timeoutMs: TIMEOUT_MS });
    if (answer.status === 412) return false;
    if (answer.status === 200) return true;
    throw new RuntimeError('failed', `Caddy refuses its configuration: ${messageOf(answer)}`);
  }

  /** Returns the port on which Caddy listens for HTTPS at present, null if on none. */
  async httpsPort(): Promise<number | null> {
    return JSON.parse((await this.#ok('GET', '/config/apps/http/https_port')).body) as number | null;
  }

  /** Returns the numbers of requests under way to all upstreams; waits at most `timeoutMs` for them. */
  async counts(timeoutMs = TIMEOUT_MS): Promise<UpstreamCount[]> {
    const { body } = await this.#ok('GET', '/reverse_proxy/upstreams', timeoutMs);
    return JSON.parse(body) as UpstreamCount[];
  }

  async #ok(method: string, path: string, timeoutMs = TIMEOUT_MS): Promise<AdminAnswer> {
    const answer = await this.#exchange(method, path, { timeoutMs });
    if (answer.status === 200) return answer;
    throw new RuntimeError('failed', `Caddy answers ${method} ${path} with ${answer.status}: ${messageOf(answer)}`);
  }

  async #exchange(method: string, path: string, asked: AdminRequest): Promise<AdminAnswer> {
    // On Linux the path goes through the folder's descriptor: a socket's path is limited to 108 bytes.
    const folder = openSync(this.#directory, constants.O_RDONLY | constants.O_DIRECTORY);
    const place = process.platform === 'linux' ? `/proc/self/fd/${folder}` : this.#directory;
    try {
      return await send(join(place, ADMIN_SOCKET), method, path, asked);
    } finally {
      closeSync(folder);
    }
  }
}

function messageOf({ body }: AdminAnswer): string {
  try {
    return (JSON.parse(body) as { error?: string }).error ?? body;
  } catch (error) {
    if (error instanceof SyntaxError) return body.trim().slice(0, 500);
    throw error;
  }
}

function send(
  socketPath: string,
  method: string,
  path: string,
  { body, headers = {}, timeoutMs }: AdminRequest,
): Promise<AdminAnswer> {
  const late = new RuntimeError('failed', `Caddy's admin API did not answer within ${Math.round(timeoutMs)} ms.`);
  const content = body === undefined ? undefined : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException) => reject(error.code === 'ABORT_ERR' ? late : error);
    const sent = request(
      {
        socketPath,
        method,
        path,
        agent: false,
        signal: AbortSignal.timeout(Math.max(1, Math.ceil(timeoutMs))),
        headers: {
          host: ADMIN_HOST,
          ...(content === undefined
            ? {}
            : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(content) }),
          ...headers,
        },
      },
      (response) => {
        // Version 2.6 sends the ETag of a configuration as a trailer.
        text(response).then(
          (answer) =>
            resolve({
              status: response.statusCode!,
              body: answer,
              etag: response.trailers['etag'] ?? response.headers['etag'],
            }),
          fail,
        );
      },
    );
    sent.on('error', fail);
    sent.end(content);
  });
}
