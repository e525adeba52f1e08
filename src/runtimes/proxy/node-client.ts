import { ServerResponse } from '#kernel/node-http.ts';
import type { IncomingMessage, ServerResponse as Response } from 'node:http';
import { pipeline } from 'node:stream';
import type { Duplex } from 'node:stream';
import type { Socket } from 'node:net';
import { answerError } from '#runtimes/proxy/answers.ts';
import { Exchange } from '#runtimes/proxy/exchange.ts';
import type { Client } from '#runtimes/proxy/exchange.ts';
import { forwardedHeaders } from '#runtimes/proxy/headers.ts';
import { fieldPairs } from '#runtimes/proxy/heads.ts';
import type { ResponseHead } from '#runtimes/proxy/heads.ts';
import type { RouteTable } from '#runtimes/proxy/route-table.ts';
import type { UpstreamConnection } from '#runtimes/proxy/upstream-connection.ts';

const SAFE = new Set(['GET', 'HEAD', 'OPTIONS']);

/** A request that Node's HTTP server took: whatever is not plain (plain-client.ts), uploads and websockets among it. */
export class NodeClient implements Client {
  readonly host: string;
  readonly repeatable: boolean;
  readonly #request: IncomingMessage;
  readonly #response: Response;
  readonly #exchange: Exchange;
  readonly #body: 'none' | 'length' | 'chunks';
  #upgrade: { socket: Duplex; head: Buffer } | undefined;
  /** The connection that the body is being sent on. */
  #sending: UpstreamConnection | undefined;

  constructor(table: RouteTable, request: IncomingMessage, response: Response) {
    this.#request = request;
    this.#response = response;
    this.host = request.headers.host ?? '';
    const length = request.headers['content-length'];
    const chunked = request.headers['transfer-encoding'] !== undefined;
    this.#body = chunked ? 'chunks' : length !== undefined && length !== '0' ? 'length' : 'none';
    this.repeatable = SAFE.has(request.method!) && this.#body === 'none' && request.headers.upgrade === undefined;
    this.#exchange = new Exchange(table, this);
    response.on('close', () => {
      if (!response.writableFinished) this.#exchange.abandon();
    });
    response.on('drain', () => this.#exchange.resume());
  }

  /** A websocket: its connection is handed through once the upstream agrees. */
  static forUpgrade(table: RouteTable, request: IncomingMessage, socket: Duplex, head: Buffer): NodeClient {
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(socket as Socket);
    response.on('finish', () => socket.end());
    socket.on('error', () => socket.destroy());
    const client = new NodeClient(table, request, response);
    client.#upgrade = { socket, head };
    return client;
  }

  forward(): void {
    const path = this.#request.url!;
    if (!path.startsWith('/'))
      return this.answer(400, `The request target ${path} is not a path: this is not a forward proxy.`);
    // Nobody knows whether such bytes are a body or the other protocol.
    if (this.#upgrade && this.#body !== 'none') return this.answer(400, 'A request to upgrade has no body.');
    this.#exchange.forward();
  }

  send(connection: UpstreamConnection, answerDeadline: () => number): void {
    const request = this.#request;
    connection.sendHead(request.method!, this.#head());
    if (this.#body === 'none') return connection.finishRequest(answerDeadline());
    this.#sending = connection;
    const chunks = this.#body === 'chunks';
    request.on('data', (bytes: Buffer) => {
      if (this.#sending !== connection) return;
      if (chunks) connection.writeText(`${bytes.length.toString(16)}\r\n`);
      const more = connection.write(bytes);
      if (chunks) connection.writeText('\r\n');
      if (!more) request.pause();
    });
    request.on('end', () => {
      if (this.#sending !== connection) return;
      this.#sending = undefined;
      if (chunks) connection.writeText('0\r\n\r\n');
      connection.finishRequest(answerDeadline());
    });
  }

  onDrain(): void {
    if (this.#sending) this.#request.resume();
  }

  onHead({ status, reason, lines }: ResponseHead): void {
    this.#response.writeHead(status, reason, fieldPairs(lines));
  }

  /** A body that follows in the same packet goes out with the head; one that lets wait must not hold it back. */
  onPart(): void {
    this.#response.flushHeaders();
  }

  onBody(bytes: Buffer): boolean {
    return this.#response.write(bytes);
  }

  onEnd(trailers: string): void {
    this.#discardBody();
    const pairs = fieldPairs(trailers);
    for (let at = 0; at < pairs.length; at += 2) this.#response.addTrailers({ [pairs[at]!]: pairs[at + 1]! });
    this.#response.end();
  }

  onUpgrade(head: ResponseHead, upstream: Socket, done: () => void): void {
    if (!this.#upgrade) {
      upstream.destroy();
      done();
      return this.answer(502, `The service at ${this.host} changed the protocol unasked.`);
    }
    const { socket, head: early } = this.#upgrade;
    this.#response.detachSocket(socket as Socket);
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\n${head.lines}connection: Upgrade\r\nupgrade: ${head.upgrade ?? ''}\r\n\r\n`,
      'latin1',
    );
    if (early.length > 0) upstream.write(early);
    // Either side's end or error ends both; how it ended is no one's business here.
    pipeline(socket, upstream, socket, () => {
      socket.destroy();
      upstream.destroy();
      done();
    });
  }

  answer(status: number, message: string): void {
    this.#discardBody();
    if (!this.#response.destroyed) answerError(this.#request, this.#response, status, message);
  }

  cut(): void {
    this.#response.destroy();
  }

  /** What the client still sends is read and forgotten: it gets its answer, and its next request is found. */
  #discardBody(): void {
    if (!this.#sending) return;
    this.#sending = undefined;
    this.#request.resume();
  }

  #head(): string {
    const { method, url, headers, socket } = this.#request;
    const pairs = forwardedHeaders(headers, { host: this.host, proto: 'http', socket });
    let text = `${method} ${url} HTTP/1.1\r\n`;
    for (let at = 0; at < pairs.length; at += 2) text += `${pairs[at]}: ${pairs[at + 1]}\r\n`;
    if (this.#body === 'chunks') text += 'transfer-encoding: chunked\r\n';
    if (this.#upgrade) return `${text}connection: Upgrade\r\nupgrade: ${headers.upgrade}\r\n\r\n`;
    return `${text}connection: keep-alive\r\n\r\n`;
  }
}
