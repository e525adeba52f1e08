import type { Socket } from 'node:net';
import type { ResponseHead } from '#runtimes/proxy/heads.ts';
import type { RouteTable } from '#runtimes/proxy/route-table.ts';
import type { Attempt, Failure, UpstreamConnection } from '#runtimes/proxy/upstream-connection.ts';
import type { UpstreamState } from '#runtimes/proxy/upstreams.ts';

/** Where a request came from, and where its answer goes. */
export interface Client {
  /** As the client wrote it, perhaps with a port. */
  readonly host: string;
  /** Whether the request may be sent a second time: a safe method (RFC 9110 §9.2.1) without a body. */
  readonly repeatable: boolean;
  /** Sends the request; calls `finishRequest` when all of it was sent. */
  send(connection: UpstreamConnection, answerDeadline: () => number): void;
  /** More of the request may be written. */
  onDrain(): void;
  onHead(head: ResponseHead): void;
  /** False: no more until `Exchange.resume`. */
  onBody(bytes: Buffer): boolean;
  /** Nothing more of the answer is there for now: what was kept back goes out. */
  onPart(): void;
  onEnd(trailers: string): void;
  /** Takes the connection for something else than HTTP; calls `done` when that has ended. Without it such an answer is an error. */
  onUpgrade?(head: ResponseHead, upstream: Socket, done: () => void): void;
  /** An answer of the proxy itself. */
  answer(status: number, message: string): void;
  /** The answer has begun and cannot be completed. */
  cut(): void;
}

/**
 * One request on its way to an upstream and back. Another upstream is tried when no connection came about. A repeatable request
 * is tried once more when its connection ended before any answer: an upstream may close a kept connection in the moment in
 * which we use it.
 */
export class Exchange implements Attempt {
  readonly #table: RouteTable;
  readonly #client: Client;
  readonly #tried: UpstreamState[] = [];
  #upstream: UpstreamState | undefined;
  #connection: UpstreamConnection | undefined;
  #started = false;
  #repeated = false;
  #abandoned = false;

  constructor(table: RouteTable, client: Client) {
    this.#table = table;
    this.#client = client;
  }

  /** Sends the request to the next upstream of its host, or answers why that can't be done. */
  forward(): void {
    const { host } = this.#client;
    const route = this.#table.find(host);
    if (!route) return this.#client.answer(404, `There is no service at ${host}.`);
    const upstream = route.pick(this.#tried);
    if (!upstream) return this.#client.answer(503, `The service at ${host} is not running.`);
    this.#tried.push(upstream);
    this.#upstream = upstream;
    upstream.begin();
    upstream.open(this, this.#repeated ? 'none' : this.#client.repeatable ? 'any' : 'recent');
  }

  /** The client is gone: nobody waits for the answer. */
  abandon(): void {
    this.#abandoned = true;
    this.#connection?.destroy();
    this.#settle();
  }

  /** The client takes more of the answer. */
  resume(): void {
    this.#connection?.resume();
  }

  onReady(connection: UpstreamConnection): void {
    if (this.#abandoned) return connection.destroy();
    this.#connection = connection;
    const upstream = this.#upstream!;
    this.#client.send(connection, () => upstream.answerDeadline());
  }

  onDrain(): void {
    this.#client.onDrain();
  }

  onHead(head: ResponseHead): void {
    this.#started = true;
    this.#client.onHead(head);
  }

  onBody(bytes: Buffer): void {
    if (!this.#client.onBody(bytes)) this.#connection?.pause();
  }

  onPart(): void {
    this.#client.onPart();
  }

  onEnd(trailers: string): void {
    this.#settle();
    this.#client.onEnd(trailers);
  }

  onUpgrade(head: ResponseHead, upstream: Socket): void {
    if (this.#client.onUpgrade) return this.#client.onUpgrade(head, upstream, () => this.#settle());
    upstream.destroy();
    this.onFailure('malformed', 'it changed the protocol unasked');
  }

  onFailure(failure: Failure, why: string): void {
    const upstream = this.#upstream;
    if (!upstream || this.#abandoned) return;
    if (failure === 'refused') upstream.connectFailed();
    this.#settle();
    if (this.#started) return this.#client.cut();
    if (this.#mayTryAnother(failure)) return this.forward();
    const { host } = this.#client;
    if (failure === 'late') return this.#client.answer(504, `The service at ${host} did not answer in time.`);
    this.#client.answer(502, `The service at ${host} ${REASONS[failure]}${failure === 'malformed' ? `: ${why}` : ''}.`);
  }

  #mayTryAnother(failure: Failure): boolean {
    if (failure === 'refused') {
      const route = this.#table.find(this.#client.host);
      return route?.upstreams.some((upstream) => !this.#tried.includes(upstream)) ?? false;
    }
    if (failure !== 'lost' || this.#repeated || !this.#client.repeatable) return false;
    this.#repeated = true;
    this.#tried.length = 0;
    return true;
  }

  #settle(): void {
    const upstream = this.#upstream;
    this.#upstream = undefined;
    this.#connection = undefined;
    upstream?.end();
  }
}

const REASONS = {
  refused: 'takes no connections',
  lost: 'closed the connection without an answer',
  malformed: 'gave an answer that is not valid',
};
