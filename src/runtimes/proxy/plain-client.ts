import type { Socket } from 'node:net';
import { errorAnswer } from '#runtimes/proxy/answers.ts';
import { Exchange } from '#runtimes/proxy/exchange.ts';
import type { Client } from '#runtimes/proxy/exchange.ts';
import { clientAddress } from '#runtimes/proxy/headers.ts';
import { readPlainRequest } from '#runtimes/proxy/heads.ts';
import type { PlainRequest, ResponseHead } from '#runtimes/proxy/heads.ts';
import type { RouteTable } from '#runtimes/proxy/route-table.ts';
import type { UpstreamConnection } from '#runtimes/proxy/upstream-connection.ts';

/** How long a connection may say nothing at first, and between requests, in milliseconds. */
const FIRST_BYTE_MS = 60_000;
export const KEPT_SECONDS = 65;

/** Up to here a part of an answer goes out as one text with what is before and after it. */
const SMALL = 16 << 10;
const SAFE = new Set(['GET', 'HEAD', 'OPTIONS']);
const END_OF_HEAD = '\r\n\r\n';
const KEEP = `connection: keep-alive\r\nkeep-alive: timeout=${KEPT_SECONDS}\r\n\r\n`;
const CLOSE = 'connection: close\r\n\r\n';

export interface PlainClientOptions {
  table: RouteTable;
  /** Takes a connection whose next request is not plain, with what it said. */
  handOver(socket: Socket, bytes: Buffer): void;
  onClosed(client: PlainClient): void;
  /** Whether connections are to be closed after their answer. */
  isRetired(): boolean;
}

/**
 * A connection for as long as its requests are plain ones: whole in one packet, with a short body of known length at most
 * (heads.ts). They cost about half of what they would through Node's HTTP server, which gets the connection with the first
 * request that is anything else.
 */
export class PlainClient implements Client {
  readonly #options: PlainClientOptions;
  readonly #socket: Socket;
  /** When the connection is closed if nothing came, in `performance.now()`. */
  deadline = performance.now() + FIRST_BYTE_MS;
  #request: PlainRequest | undefined;
  #body = '';
  #exchange: Exchange | undefined;
  /** What came before the answer was complete. */
  #early: Buffer | undefined;
  #chunked = false;
  #closing = false;
  /** What is to be written. */
  #out = '';
  #forwarded: string | undefined;

  constructor(socket: Socket, options: PlainClientOptions) {
    this.#socket = socket;
    this.#options = options;
    socket.on('data', this.#onData);
    socket.on('end', this.#onEnded);
    socket.on('drain', this.#onDrained);
    socket.on('error', this.#onError);
    socket.on('close', this.#onClose);
  }

  get host(): string {
    return this.#request!.host;
  }

  get repeatable(): boolean {
    return SAFE.has(this.#request!.method) && this.#body === '';
  }

  get isIdle(): boolean {
    return this.#exchange === undefined;
  }

  destroy(): void {
    this.#socket.destroy();
  }

  send(connection: UpstreamConnection, answerDeadline: () => number): void {
    const { method, path, lines, host } = this.#request!;
    this.#forwarded ??= this.#describe();
    const head = `${method} ${path} HTTP/1.1\r\n${lines}x-forwarded-host: ${host}\r\n${this.#forwarded}`;
    connection.sendHead(method, head + this.#body);
    connection.finishRequest(answerDeadline());
  }

  onDrain(): void {}

  onHead({ status, reason, lines, hasDate, framing }: ResponseHead): void {
    const { method, close } = this.#request!;
    const hasBody = method !== 'HEAD' && status !== 204 && status !== 304;
    this.#chunked = hasBody && framing.by !== 'length';
    this.#closing = close || this.#options.isRetired();
    const date = hasDate ? '' : `date: ${httpDate()}\r\n`;
    const encoding = this.#chunked ? 'transfer-encoding: chunked\r\n' : '';
    this.#out = `HTTP/1.1 ${status} ${reason}\r\n${lines}${date}${encoding}${this.#closing ? CLOSE : KEEP}`;
  }

  onBody(bytes: Buffer): boolean {
    const socket = this.#socket;
    if (this.#chunked) this.#out += `${bytes.length.toString(16)}\r\n`;
    if (bytes.length <= SMALL) this.#out += bytes.toString('latin1');
    else {
      socket.cork();
      this.onPart();
      socket.write(bytes);
      socket.uncork();
    }
    if (this.#chunked) this.#out += '\r\n';
    if (this.#out.length > SMALL) this.onPart();
    return !socket.writableNeedDrain;
  }

  onPart(): void {
    if (this.#out === '') return;
    this.#socket.write(this.#out, 'latin1');
    this.#out = '';
  }

  onEnd(trailers: string): void {
    if (this.#chunked) this.#out += `0\r\n${trailers}\r\n`;
    this.#finish();
  }

  answer(status: number, message: string): void {
    const { method, close, lines } = this.#request!;
    const [, accept = ''] = /^accept:(.*)\r$/im.exec(lines) ?? [];
    const { headers, body } = errorAnswer(accept, status, message);
    this.#closing = close || this.#options.isRetired();
    this.#out = `HTTP/1.1 ${headers}date: ${httpDate()}\r\n${this.#closing ? CLOSE : KEEP}`;
    this.onPart();
    if (method !== 'HEAD') this.#socket.write(body);
    this.#finish();
  }

  cut(): void {
    this.#socket.destroy();
  }

  /** The answer is complete: the next request may come. */
  #finish(): void {
    const socket = this.#socket;
    this.onPart();
    this.#exchange = undefined;
    this.deadline = performance.now() + KEPT_SECONDS * 1000;
    if (this.#closing) return void socket.end();
    const early = this.#early;
    if (!early) return;
    this.#early = undefined;
    socket.resume();
    this.#take(early);
  }

  readonly #onData = (bytes: Buffer): void => {
    if (!this.#exchange) return this.#take(bytes);
    // The next request before the answer to this one: it waits.
    this.#early = this.#early ? Buffer.concat([this.#early, bytes]) : bytes;
    this.#socket.pause();
  };

  #take(bytes: Buffer): void {
    const end = bytes.indexOf(END_OF_HEAD, 0, 'latin1') + END_OF_HEAD.length;
    const request =
      end >= END_OF_HEAD.length && end <= SMALL ? readPlainRequest(bytes.toString('latin1', 0, end)) : null;
    if (!request || bytes.length !== end + request.length || request.length > SMALL) {
      this.#letGo();
      return this.#options.handOver(this.#socket, bytes);
    }
    this.#request = request;
    this.#body = request.length > 0 ? bytes.toString('latin1', end) : '';
    this.deadline = Infinity;
    this.#exchange = new Exchange(this.#options.table, this);
    this.#exchange.forward();
  }

  #letGo(): void {
    const socket = this.#socket;
    socket.removeListener('data', this.#onData);
    socket.removeListener('end', this.#onEnded);
    socket.removeListener('drain', this.#onDrained);
    socket.removeListener('error', this.#onError);
    socket.removeListener('close', this.#onClose);
    this.#options.onClosed(this);
  }

  /** One that says nothing more waits for nothing more, as Node's HTTP server takes it, too. */
  readonly #onEnded = (): void => {
    this.#exchange?.abandon();
    this.#socket.destroySoon();
  };

  readonly #onDrained = (): void => this.#exchange?.resume();
  readonly #onError = (): void => void this.#socket.destroy();

  readonly #onClose = (): void => {
    this.#exchange?.abandon();
    this.#options.onClosed(this);
  };

  /** What the upstream is told of the client (headers.ts), and the end of the head. */
  #describe(): string {
    const { remoteAddress, localPort } = this.#socket;
    return (
      `x-forwarded-for: ${clientAddress(remoteAddress)}\r\nx-forwarded-proto: http\r\n` +
      `x-forwarded-port: ${localPort}\r\nconnection: keep-alive\r\n\r\n`
    );
  }
}

let date = '';
let dateUntil = 0;

/** The time as the Date header says it. */
function httpDate(): string {
  const now = Date.now();
  if (now < dateUntil) return date;
  dateUntil = now - (now % 1000) + 1000;
  return (date = new Date(now).toUTCString());
}
