import { anySignal } from '#kernel/lease-signal.ts';
import type { IncomingMessage, Server } from 'node:http';
import type { Socket as Connection } from 'node:net';
import type { Duplex } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import { WebSocketServer, type WebSocket } from 'ws';
import { AppError, badRequest } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import { STATUS_CODES } from '#kernel/node-http.ts';
import { AccessWatch } from '#platform/http/access-watch.ts';
import { answerTo, type ErrorAnswer } from '#platform/http/errors.ts';
import type { Pipeline } from '#platform/http/pipeline.ts';
import { OnOtherMachine } from '#platform/machines/elsewhere.ts';
import { sendSocketOn, type SocketOpening } from '#platform/machines/send-on.ts';
import { Slots } from '#platform/http/slots.ts';
import { openSocket, type Opened } from '#platform/sockets/open.ts';
import { beginHeartbeat } from '#platform/sockets/heartbeat.ts';
import { Peer, SocketEnd } from '#platform/sockets/peer.ts';
import type { Socket } from '#platform/sockets/socket.ts';

/** Bytes of the largest message that a client may send. */
const MESSAGE_BYTES = 1024 * 1024;
/** Milliseconds that a client has to answer a close; half of that when the server ends. */
const CLOSE_MS = 2_000;
/** Subprotocol that a browser offers besides the one that carries its token. */
const PROTOCOL = 'v1';
const TOKEN_PROTOCOL = 'auth.bearer.';

export interface SocketServerOptions {
  pipeline: Pipeline;
  sockets: readonly Socket[];
  /** Called when an opening was answered, for metrics. */
  onAnswer?: (path: string, method: string, status: number, seconds: number) => void;
  pingMs?: number;
}

interface Serving {
  /** Connection of the socket. */
  stream: Connection;
  signal: AbortSignal;
  requestId: string;
  log: Pipeline['platform']['log'];
}

/** Serves web sockets beside the routes of a server (docs/sockets.md). */
export class SocketServer {
  readonly #options: SocketServerOptions;
  readonly #byPath: Map<string, Socket>;
  readonly #slots = new Slots({ plural: 'web sockets', advice: 'close one' });
  readonly #running = new Set<Promise<void>>();
  readonly #handshakes = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    maxPayload: MESSAGE_BYTES,
    // Compression takes memory for each socket and is a way to send a lot for little.
    perMessageDeflate: false,
    handleProtocols: (offered) => (offered.has(PROTOCOL) ? PROTOCOL : false),
  });

  constructor(options: SocketServerOptions) {
    this.#options = options;
    this.#byPath = new Map(options.sockets.map((socket) => [socket.path, socket]));
    this.#handshakes.on('wsClientError', (_error, socket) =>
      refuse(socket, badRequest('The handshake of the web socket is malformed.'), newId()),
    );
  }

  /** Returns whether a request asks for one of the sockets; all others, those for HTTP/2 included, are requests. */
  wants(request: IncomingMessage): boolean {
    return request.headers.upgrade?.toLowerCase() === 'websocket' && this.#byPath.has(pathOf(request.url).path);
  }

  attach(app: FastifyInstance): void {
    (app.server as Server).on('upgrade', (request: IncomingMessage, stream: Duplex, head: Buffer) => {
      const running = this.#answer(request, stream, head);
      this.#running.add(running);
      void running.finally(() => this.#running.delete(running));
    });
  }

  /** Resolves when every socket is closed, which `Pipeline.closing` begins. */
  async closed(): Promise<void> {
    await Promise.all(this.#running);
  }

  /** Never rejects. */
  async #answer(request: IncomingMessage, stream: Duplex, head: Buffer): Promise<void> {
    const started = performance.now();
    const { pipeline, onAnswer } = this.#options;
    const { path, search } = pathOf(request.url);
    const requestId = newId();
    const log = pipeline.platform.log.child({ requestId });
    const offered = protocolsOf(request);
    const gone = new AbortController();
    const leave = () => gone.abort();
    // Without a listener an error of the connection would end the process.
    stream.on('error', leave);
    stream.once('close', leave);
    const signal = anySignal([gone.signal, pipeline.closing]);
    const definition = this.#byPath.get(path);
    const answered = (status: number) => {
      const seconds = (performance.now() - started) / 1000;
      onAnswer?.(definition ? path : 'unknown', 'GET', status, seconds);
      log.info({ path: definition ? path : 'unknown', status, ms: Math.round(seconds * 1000) }, 'web socket');
    };
    let opened: Opened | undefined;
    try {
      if (!definition) throw new AppError('not_found', 'Path not found.');
      if (pipeline.closing.aborted) throw new AppError('unavailable', 'The server is closing.');
      const authorization = request.headers.authorization ?? tokenOf(offered);
      opened = await openSocket({ pipeline, slots: this.#slots }, definition, {
        request,
        authorization,
        search,
        requestId,
        log,
        signal,
      });
    } catch (failure) {
      const error = await this.#sendOn(failure, { request, stream, head, signal }, answered);
      if (error === undefined) return;
      const answer = answerTo(error, requestId);
      if (answer.status >= 500) log.error({ err: error }, 'a web socket could not be opened');
      answered(answer.status);
      // Browsers tell a page nothing of an answer that is no handshake: they learn the reason from the close.
      if (!offered.includes(PROTOCOL)) return refuse(stream, error, requestId);
      const socket = await this.#shake(request, stream, head);
      if (socket) await close(socket, ...closingOf(answer), CLOSE_MS);
      return;
    }
    try {
      const socket = await this.#shake(request, stream, head);
      if (!socket) return;
      answered(101);
      await this.#serve(socket, definition, opened, { stream: request.socket, signal, requestId, log });
    } finally {
      opened.release();
    }
  }

  /** Sends an opening on to the machine that it is for. Returns the error that is to be answered, undefined where it was sent on. */
  async #sendOn(error: unknown, opening: SocketOpening, answered: (status: number) => void): Promise<unknown> {
    if (!(error instanceof OnOtherMachine)) return error;
    return sendSocketOn(this.#options.pipeline.platform, error, opening, answered).catch((cause: unknown) => cause);
  }

  /** Carries out the handshake; undefined where the client is gone or its handshake malformed, which is answered. */
  #shake(request: IncomingMessage, stream: Duplex, head: Buffer): Promise<WebSocket | undefined> {
    if (stream.destroyed) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      const failed = () => resolve(undefined);
      stream.once('close', failed);
      this.#handshakes.handleUpgrade(request, stream, head, (socket) => {
        stream.off('close', failed);
        // What is wrong with a frame has its close code; it ends this socket only.
        socket.on('error', () => undefined);
        resolve(socket);
      });
    });
  }

  /** Runs an open socket to its end. */
  async #serve(
    socket: WebSocket,
    definition: Socket,
    { principal, run, check }: Opened,
    { stream, signal, requestId, log }: Serving,
  ): Promise<void> {
    const watch = new AccessWatch(principal, { signal, log, check });
    const endPings = beginHeartbeat(socket, stream, { pingMs: this.#options.pingMs });
    const peer = new Peer(socket, { signal: watch.signal, who: () => watch.principal, input: definition.input });
    let reason = '';
    let failure: unknown;
    try {
      reason = (await Promise.race([run(peer), ended(watch.signal)])) ?? '';
    } catch (error) {
      failure = error;
    } finally {
      watch.stop();
      endPings();
    }
    if (this.#options.pipeline.closing.aborted) return close(socket, 1001, 'The server is closing.', CLOSE_MS / 2);
    failure = watch.refusal ?? failure;
    if (failure instanceof SocketEnd) return close(socket, failure.code, failure.message, CLOSE_MS);
    if (failure === undefined) return close(socket, 1000, reason, CLOSE_MS);
    const answer = answerTo(failure, requestId);
    if (answer.status === 500) log.error({ err: failure }, 'a web socket ends with an error');
    return close(socket, ...closingOf(answer), CLOSE_MS);
  }
}

const ended = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });

/** Path and query of a request, with the prefix of the API taken off as for routes. */
function pathOf(url = '/'): { path: string; search: string } {
  const at = url.indexOf('?');
  const path = at < 0 ? url : url.slice(0, at);
  return { path: path.replace(/^\/api\/v1(?=\/)/, ''), search: at < 0 ? '' : url.slice(at + 1) };
}

const protocolsOf = ({ headers }: IncomingMessage): string[] =>
  (headers['sec-websocket-protocol'] ?? '').split(',').map((protocol) => protocol.trim());

/** Returns the `Authorization` that the subprotocols of a browser stand for. */
function tokenOf(offered: string[]): string | undefined {
  const token = offered.find((protocol) => protocol.startsWith(TOKEN_PROTOCOL));
  return token && `Bearer ${token.slice(TOKEN_PROTOCOL.length)}`;
}

/** Returns the code and reason that close a refused socket: 1008 says not to try again, 1011 that a retry may succeed. */
const closingOf = ({ status, body }: ErrorAnswer): [code: number, reason: string] => [
  status >= 500 || status === 429 ? 1011 : 1008,
  body.message,
];

/** Bytes of a reason that a close frame has room for. */
const REASON_BYTES = 123;

function shortened(reason: string): string {
  const bytes = Buffer.from(reason);
  if (bytes.length <= REASON_BYTES) return reason;
  // No half of a character at the end.
  return bytes
    .subarray(0, REASON_BYTES - 3)
    .toString()
    .replace(/\uFFFD+$/, '')
    .concat('…');
}

/** Closes a socket, at the latest after so long whatever its client does. */
async function close(socket: WebSocket, code: number, reason: string, ms: number): Promise<void> {
  if (socket.readyState === socket.CLOSED) return;
  await new Promise<void>((resolve) => {
    const timer = setTimeout(() => socket.terminate(), ms);
    socket.once('close', () => {
      clearTimeout(timer);
      resolve();
    });
    // What the client still sends is not waited for.
    socket.resume();
    socket.close(code, shortened(reason));
  });
}

/** Refuses an upgrade with the answer of a request, and closes the connection. */
function refuse(stream: Duplex, error: unknown, requestId: string): void {
  const { status, headers, body } = answerTo(error, requestId);
  const text = JSON.stringify(body);
  const lines = {
    ...headers,
    'x-request-id': requestId,
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
    connection: 'close',
  };
  const head = Object.entries(lines).map(([name, value]) => `${name}: ${value}\r\n`);
  stream.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Error'}\r\n${head.join('')}\r\n${text}`);
  // Half open as it is, it would stay until its client leaves.
  stream.once('finish', () => stream.destroy());
}
