import type { IncomingMessage, ServerResponse } from 'node:http';
import { PassThrough } from 'node:stream';
import type { Duplex } from 'node:stream';
import { errors } from 'undici';
import type { Dispatcher } from 'undici';
import { answerError } from '#runtimes/proxy/builtin/answers.ts';
import { hasBody } from '#runtimes/proxy/builtin/admission.ts';
import { answerFields, requestFields, trailerFields, valuesOf } from '#runtimes/proxy/builtin/headers.ts';
import type { HostRoute, RouteTable } from '#runtimes/proxy/builtin/route-table.ts';
import { ConnectFailed } from '#runtimes/proxy/builtin/upstreams.ts';
import type { UpstreamState } from '#runtimes/proxy/builtin/upstreams.ts';
import type { ProxyLimits } from '#runtimes/proxy/limits.ts';
import { countRequest, VISITOR_LEFT } from '#runtimes/proxy/requests.ts';

const SAFE = new Set(['GET', 'HEAD', 'OPTIONS']);

/** Admitted request, and the destination of its answer. */
export interface Admitted {
  request: IncomingMessage;
  response: ServerResponse;
  /** True if the peer's `X-Forwarded-*` headers count. */
  trusted: boolean;
  /** Takes over the connection when the upstream accepts a websocket; calls `done` when it has ended. */
  onUpgrade?(fields: string[], upstream: Duplex, done: () => void): void;
}

type Controller = Dispatcher.DispatchController;

/** Converts raw fields of HTTP/1.1, which come as a list, to text. */
const textOf = (raw: Controller['rawHeaders']): string[] =>
  Array.isArray(raw) ? raw.map((part) => (typeof part === 'string' ? part : part.toString('latin1'))) : [];

/**
 * Request on its way to an upstream and back. If a connection fails, another upstream is tried. A safe request without a body is repeated
 * once, on a new connection, if its connection ended before any answer: an upstream may close a kept connection at the moment of its use.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly #table: RouteTable;
  readonly #limits: ProxyLimits;
  readonly #admitted: Admitted;
  readonly #host: string;
  readonly #hasBody: boolean;
  readonly #startedAt = performance.now();
  /** Route of the host, once the request was sent on. */
  #route: HostRoute | undefined;
  readonly #tried: UpstreamState[] = [];
  #upstream: UpstreamState | undefined;
  #controller: Controller | undefined;
  #body: PassThrough | undefined;
  /** Ends the exchange when the request stalls. */
  #uploadStall: NodeJS.Timeout | undefined;
  /** Ends the exchange when the visitor stops reading the answer. */
  #answerStall: NodeJS.Timeout | undefined;
  #started = false;
  #repeated = false;
  #over = false;

  constructor(table: RouteTable, limits: ProxyLimits, admitted: Admitted) {
    this.#table = table;
    this.#limits = limits;
    this.#admitted = admitted;
    this.#host = admitted.request.headers.host ?? '';
    this.#hasBody = hasBody(admitted.request);
  }

  start(): void {
    const { request, response } = this.#admitted;
    // `close` handles the end of the visitor's connection.
    request.on('error', () => undefined);
    response.on('error', () => undefined);
    response.on('drain', () => {
      clearTimeout(this.#answerStall);
      this.#controller?.resume();
    });
    response.on('close', () => {
      if (!response.writableFinished) this.#abandon();
      this.#count(response.headersSent ? response.statusCode : VISITOR_LEFT);
    });
    if (this.#hasBody) this.#takeBody();
    this.#forward();
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller;
    if (this.#over) controller.abort(new Error('the visitor left'));
  }

  onResponseStart(controller: Controller, status: number, _headers: unknown, reason?: string): void {
    // Interim answers (1xx) are not passed on; the final one follows.
    if (this.#over || status < 200) return;
    const given = textOf(controller.rawHeaders);
    const encodings = valuesOf(given, 'transfer-encoding');
    if (encodings.some((encoding) => encoding.toLowerCase() !== 'chunked') || encodings.length > 1)
      throw new Error(`its transfer encoding is ${encodings.join(', ')}`);
    const { response } = this.#admitted;
    // Bytes that are not allowed in a header would make the answer fail.
    response.writeHead(status, /^[\t\x20-\x7e]*$/.test(reason ?? '') ? reason : '', answerFields(given));
    this.#started = true;
    // A body in the same packet goes out with the head; a later one must not delay the head.
    process.nextTick(() => {
      if (!response.writableEnded && !response.destroyed) response.flushHeaders();
    });
  }

  onResponseData(controller: Controller, bytes: Buffer): void {
    if (this.#over || this.#admitted.response.write(bytes)) return;
    controller.pause();
    clearTimeout(this.#answerStall);
    this.#answerStall = setTimeout(() => this.#cut(), this.#limits.stallMs);
  }

  onResponseEnd(controller: Controller): void {
    if (this.#over) return;
    const { response } = this.#admitted;
    const trailers = trailerFields(textOf(controller.rawTrailers));
    if (trailers.length > 0) {
      const pairs: [string, string][] = [];
      for (let at = 0; at < trailers.length; at += 2) pairs.push([trailers[at]!, trailers[at + 1]!]);
      response.addTrailers(pairs);
    }
    this.#finish();
    response.end();
  }

  onRequestUpgrade(controller: Controller, status: number, _headers: unknown, upstream: Duplex): void {
    const { onUpgrade } = this.#admitted;
    upstream.on('error', () => upstream.destroy());
    if (this.#over || status !== 101 || !onUpgrade) {
      upstream.destroy();
      if (!this.#over) this.#answer(502, `The service at ${this.#host} changed the protocol unasked.`);
      return;
    }
    const state = this.#upstream;
    this.#upstream = undefined;
    this.#over = true;
    onUpgrade(answerFields(textOf(controller.rawHeaders)), upstream, () => state?.end());
  }

  onResponseError(_controller: Controller, error: Error): void {
    if (this.#over) return;
    const upstream = this.#upstream;
    this.#controller = undefined;
    this.#upstream = undefined;
    upstream?.end();
    if (this.#started) return this.#cut();
    if (error instanceof ConnectFailed) {
      upstream?.connectFailed();
      const others = this.#table.find(this.#host)?.upstreams.some((other) => !this.#tried.includes(other));
      // A body that was handed over once is still complete: nothing has read from it.
      if (others && !this.#body?.destroyed) return this.#forward();
      return this.#answer(502, `The service at ${this.#host} takes no connections.`);
    }
    if (error instanceof errors.HeadersTimeoutError)
      return this.#answer(504, `The service at ${this.#host} did not answer in time.`);
    const isLost = error instanceof errors.SocketError || 'syscall' in error;
    if (isLost && this.#mayRepeat()) {
      this.#repeated = true;
      this.#tried.length = 0;
      return this.#forward();
    }
    if (error instanceof errors.InvalidArgumentError)
      return this.#answer(400, `The request is not valid: ${error.message}.`);
    const why = isLost
      ? 'closed the connection without an answer'
      : `gave an answer that is not valid: ${error.message}`;
    this.#answer(502, `The service at ${this.#host} ${why}.`);
  }

  #count(status: number): void {
    // Caddy cannot tell how websockets end: neither proxy counts them.
    if (this.#route && !this.#admitted.onUpgrade)
      countRequest(this.#route.requests, status, performance.now() - this.#startedAt);
  }

  #mayRepeat(): boolean {
    const { request, onUpgrade } = this.#admitted;
    return !this.#repeated && !onUpgrade && !this.#hasBody && SAFE.has(request.method!);
  }

  /** Sends the request to the next upstream of its host, or answers with the reason why that is impossible. */
  #forward(): void {
    const route = this.#table.find(this.#host);
    if (!route) return this.#answer(404, `There is no service at ${this.#host}.`);
    this.#route = route;
    const upstream = route.pick(this.#tried);
    if (!upstream) return this.#answer(503, `The service at ${this.#host} is not running.`);
    this.#tried.push(upstream);
    this.#upstream = upstream;
    upstream.begin();
    const { request, trusted, onUpgrade } = this.#admitted;
    const { socket, method, url, rawHeaders, headers } = request;
    const arrival = { host: this.#host, peer: socket.remoteAddress ?? '', port: socket.localPort ?? 0, trusted };
    const fields = ['host', this.#host, ...requestFields(rawHeaders, arrival)];
    const length = headers['content-length'];
    if (this.#hasBody && length !== undefined) fields.push('content-length', length);
    const options: Dispatcher.DispatchOptions = {
      path: url!,
      method: method as Dispatcher.HttpMethod,
      headers: fields,
      body: this.#body ?? null,
      ...(onUpgrade ? { upgrade: 'websocket' } : {}),
    };
    if (this.#repeated) upstream.sendAlone(options, this);
    else upstream.send(options, this);
  }

  /**
   * Passes the body on through a separate stream. undici destroys the stream that it reads when an answer comes early: the visitor's own
   * stream would take its connection with it.
   */
  #takeBody(): void {
    const { request } = this.#admitted;
    const body = new PassThrough();
    body.on('error', () => undefined);
    this.#body = body;
    const stall = setTimeout(() => this.#stalled(), this.#limits.stallMs);
    this.#uploadStall = stall;
    request.on('data', () => {
      // A refresh would restart a cleared timer.
      if (!this.#over) stall.refresh();
    });
    request.on('end', () => clearTimeout(stall));
    request.pipe(body);
  }

  #stalled(): void {
    if (this.#over) return;
    if (this.#started) return this.#cut();
    const controller = this.#controller;
    this.#answer(408, 'The rest of the request did not come in time.');
    controller?.abort(new Error('the request stalled'));
  }

  /** Ends the exchange of a visitor that is gone: its answer is not needed. */
  #abandon(): void {
    if (this.#over) return;
    const controller = this.#controller;
    this.#finish();
    controller?.abort(new Error('the visitor left'));
  }

  /** Ends the visitor's connection: its answer has begun and cannot be completed. */
  #cut(): void {
    const controller = this.#controller;
    this.#finish();
    this.#admitted.response.destroy();
    controller?.abort(new Error('the answer was cut'));
  }

  #answer(status: number, message: string): void {
    const { request, response } = this.#admitted;
    this.#finish();
    response.statusMessage = '';
    if (!response.destroyed && !response.headersSent) answerError(request, response, status, message);
    else response.destroy();
  }

  /** Detaches from the upstream. The rest of the visitor's body is read and discarded, so that its next request is found. */
  #finish(): void {
    this.#over = true;
    clearTimeout(this.#uploadStall);
    clearTimeout(this.#answerStall);
    const upstream = this.#upstream;
    this.#upstream = undefined;
    this.#controller = undefined;
    upstream?.end();
    if (!this.#body) return;
    const { request } = this.#admitted;
    request.unpipe(this.#body);
    request.resume();
    if (request.complete) return;
    // The rest of the body has the same time limit as before.
    const late = setTimeout(() => request.destroy(), this.#limits.stallMs);
    request.once('close', () => clearTimeout(late));
  }
}
