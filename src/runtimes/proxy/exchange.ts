import { ServerResponse } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { pipeline } from 'node:stream';
import type { Duplex } from 'node:stream';
import type { Dispatcher } from 'undici';
import { answerError } from '#runtimes/proxy/answers.ts';
import { forwardedHeaders, returnedHeaders } from '#runtimes/proxy/headers.ts';
import type { RouteTable } from '#runtimes/proxy/route-table.ts';
import type { UpstreamState } from '#runtimes/proxy/upstreams.ts';

type UpstreamError = Error & { code?: string; syscall?: string };

const TIMEOUTS = new Set(['UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'ETIMEDOUT']);
const LOST = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']);

/** No connection came about, so that nothing of the request was sent. */
const isConnectError = (error: UpstreamError): boolean =>
  error.syscall === 'connect' || error.code === 'UND_ERR_CONNECT_TIMEOUT';

/**
 * One request on its way to an upstream and back. Another upstream is tried when no connection came about. A request without a
 * body that is safe to repeat (RFC 9110 §9.2.1) is tried once more when its connection ended before any answer: an upstream
 * may close a kept connection in the moment in which we use it.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly #table: RouteTable;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #tried: UpstreamState[] = [];
  readonly #hasBody: boolean;
  #upgrade: { socket: Duplex; head: Buffer } | undefined;
  #upstream: UpstreamState | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #started = false;
  #repeated = false;

  constructor(table: RouteTable, request: IncomingMessage, response: ServerResponse) {
    this.#table = table;
    this.#request = request;
    this.#response = response;
    const length = request.headers['content-length'];
    this.#hasBody = request.headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
    response.on('close', () => {
      if (!response.writableFinished) this.#controller?.abort(new Error('the client is gone'));
    });
  }

  /** A websocket: its connection is handed through once the upstream agrees. */
  static forUpgrade(table: RouteTable, request: IncomingMessage, socket: Duplex, head: Buffer): Exchange {
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(socket as never);
    response.on('finish', () => socket.end());
    socket.on('error', () => socket.destroy());
    const exchange = new Exchange(table, request, response);
    exchange.#upgrade = { socket, head };
    return exchange;
  }

  /** Sends the request to the next upstream of its host, or answers why that can't be done. */
  forward(): void {
    const request = this.#request;
    const host = request.headers.host ?? '';
    const path = request.url!;
    if (!path.startsWith('/'))
      return this.#answer(400, `The request target ${path} is not a path: this is not a forward proxy.`);
    const route = this.#table.find(host);
    if (!route) return this.#answer(404, `There is no service at ${host}.`);
    const upstream = route.pick(this.#tried);
    if (!upstream) return this.#answer(503, `The service at ${host} is not running.`);
    this.#tried.push(upstream);
    this.#upstream = upstream;
    upstream.begin();
    const options: Dispatcher.DispatchOptions = {
      path,
      method: request.method as Dispatcher.HttpMethod,
      headers: forwardedHeaders(request.headers, { host, proto: 'http', socket: request.socket }),
      body: this.#hasBody ? request : null,
      blocking: false,
    };
    if (this.#upgrade) options.upgrade = request.headers.upgrade!;
    upstream.pool.dispatch(options, this);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#response.destroyed) controller.abort(new Error('the client is gone'));
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
    statusText?: string,
  ): void {
    if (status < 200) return;
    this.#started = true;
    const response = this.#response;
    response.writeHead(status, statusText, returnedHeaders(headers));
    // A body that follows in the same packet goes out with the head; one that lets wait must not hold it back.
    process.nextTick(() => response.flushHeaders());
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#response.write(chunk)) return;
    controller.pause();
    this.#response.once('drain', () => controller.resume());
  }

  onResponseEnd(_controller: Dispatcher.DispatchController, trailers: IncomingHttpHeaders): void {
    for (const name in trailers) {
      const value = trailers[name];
      if (value !== undefined) this.#response.addTrailers({ [name]: String(value) });
    }
    this.#response.end();
    this.#settle();
  }

  onRequestUpgrade(
    _controller: Dispatcher.DispatchController,
    _status: number,
    headers: IncomingHttpHeaders,
    upstream: Duplex,
  ): void {
    const { socket, head } = this.#upgrade!;
    this.#started = true;
    this.#response.detachSocket(socket as never);
    const lines = Object.entries({
      ...returnedHeaders(headers),
      connection: 'Upgrade',
      upgrade: headers.upgrade ?? '',
    });
    const text = lines.flatMap(([name, value]) => [value].flat().map((part) => `${name}: ${part}\r\n`)).join('');
    socket.write(`HTTP/1.1 101 Switching Protocols\r\n${text}\r\n`);
    if (head.length > 0) upstream.write(head);
    // Either side's end or error ends both; how it ended is no one's business here.
    pipeline(socket, upstream, socket, () => {
      socket.destroy();
      upstream.destroy();
      this.#settle();
    });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: UpstreamError): void {
    const upstream = this.#upstream;
    if (!upstream) return;
    if (isConnectError(error)) upstream.connectFailed();
    this.#settle();
    if (this.#response.destroyed) return;
    if (this.#started) return void this.#response.destroy();
    if (this.#mayTryAnother(error)) return this.forward();
    const host = this.#request.headers.host;
    if (TIMEOUTS.has(error.code ?? '')) return this.#answer(504, `The service at ${host} did not answer in time.`);
    if (error.code === 'UND_ERR_INVALID_ARG') return this.#answer(400, `The request is not valid: ${error.message}.`);
    const why = isConnectError(error) ? 'takes no connections' : 'closed the connection without an answer';
    this.#answer(502, `The service at ${host} ${why}.`);
  }

  #mayTryAnother(error: UpstreamError): boolean {
    if (isConnectError(error)) {
      const route = this.#table.find(this.#request.headers.host ?? '');
      return route?.upstreams.some((upstream) => !this.#tried.includes(upstream)) ?? false;
    }
    const isSafe = ['GET', 'HEAD', 'OPTIONS'].includes(this.#request.method!) && !this.#hasBody && !this.#upgrade;
    if (!isSafe || this.#repeated || !LOST.has(error.code ?? '')) return false;
    this.#repeated = true;
    this.#tried.length = 0;
    return true;
  }

  #settle(): void {
    this.#upstream?.end();
    this.#upstream = undefined;
    this.#controller = undefined;
  }

  #answer(status: number, message: string): void {
    answerError(this.#request, this.#response, status, message);
  }
}
