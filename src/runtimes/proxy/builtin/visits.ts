import type { Socket } from 'node:net';
import { isWithin } from '#kernel/addresses.ts';
import type { ProxyLimits } from '#runtimes/proxy/limits.ts';

/** Connection of a visitor. */
export class Visit {
  readonly socket: Socket;
  readonly address: string;
  /** True if the peer's information about its client counts. */
  readonly trusted: boolean;
  /** Number of requests whose answers are not complete. */
  underWay = 0;
  /** True if a request was refused: further bytes are ignored. */
  isRefused = false;
  /** Pipelined requests of HTTP/1.1, which wait for earlier answers. */
  readonly #waiting: (() => void)[] = [];
  #isServing = false;
  #deadline: number;
  readonly #restMs: number;
  readonly #resting: Set<Visit>;

  /** `resting`: visits without a request under way, the longest resting first. */
  constructor(socket: Socket, trusted: boolean, { headMs, idleMs }: ProxyLimits, resting: Set<Visit>) {
    this.#resting = resting.add(this);
    this.socket = socket;
    this.address = socket.remoteAddress ?? '';
    this.trusted = trusted;
    this.#deadline = performance.now() + headMs;
    this.#restMs = idleMs + headMs;
  }

  begin(): void {
    this.underWay++;
    this.#resting.delete(this);
  }

  end(): void {
    this.underWay--;
    this.#deadline = performance.now() + this.#restMs;
    if (this.underWay === 0 && !this.socket.destroyed) this.#resting.add(this);
  }

  /** Number of requests that wait for earlier answers. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /**
   * Serves a request of HTTP/1.1 once the earlier answers are complete: each request that is served may need a connection to an upstream.
   */
  serveInTurn(serve: () => void): void {
    if (this.#isServing) return void this.#waiting.push(serve);
    this.#isServing = true;
    serve();
  }

  /** Serves the next waiting request, after the answer to the one before. */
  serveNext(): void {
    if (this.isRefused || this.socket.destroyed) this.#waiting.length = 0;
    const serve = this.#waiting.shift();
    this.#isServing = serve !== undefined;
    serve?.();
  }

  /** Returns whether no request is under way, and none came in time. */
  isOverdue(now: number): boolean {
    return this.underWay === 0 && this.#deadline <= now;
  }
}

/**
 * Visitors' connections of every protocol, with their limits. However slowly bytes arrive, a connection is closed if no request is complete
 * in time: within `headMs` for the first, within `idleMs` plus `headMs` for the others. At the maximum number of connections a new visitor
 * replaces the one that has rested longest, so that resting connections keep no visitor out.
 */
export class Visits {
  readonly #visits = new Map<Socket, Visit>();
  readonly #resting = new Set<Visit>();
  readonly #perAddress = new Map<string, number>();
  readonly #limits: ProxyLimits;
  readonly #trusted: readonly string[];
  readonly #sweeping: NodeJS.Timeout;

  constructor(limits: ProxyLimits, trusted: readonly string[]) {
    this.#limits = limits;
    this.#trusted = trusted;
    this.#sweeping = setInterval(() => this.#sweep(), Math.min(1_000, limits.headMs / 4)).unref();
  }

  /** Ends the sweeps, once the server has closed and no connection is left. */
  stop(): void {
    clearInterval(this.#sweeping);
  }

  /** Admits a connection, or closes it and returns null. */
  enter(socket: Socket): Visit | null {
    const address = socket.remoteAddress;
    const trusted = address !== undefined && isWithin(address, this.#trusted);
    const count = (address !== undefined && this.#perAddress.get(address)) || 0;
    const isTooMany = !trusted && count >= this.#limits.connectionsPerAddress;
    if (address === undefined || isTooMany || !this.#makeRoom()) {
      socket.destroy();
      return null;
    }
    const visit = new Visit(socket, trusted, this.#limits, this.#resting);
    this.#visits.set(socket, visit);
    // The count is read again: the connection closed to make room may be of the same address.
    this.#perAddress.set(address, (this.#perAddress.get(address) ?? 0) + 1);
    socket.once('close', () => this.#leave(visit));
    return visit;
  }

  of(socket: Socket): Visit | undefined {
    return this.#visits.get(socket);
  }

  /** Closes the connections without a request under way. */
  closeIdle(): void {
    for (const visit of this.#visits.values()) if (visit.underWay === 0) visit.socket.destroy();
  }

  /** Closes the longest resting connection if there are too many; returns false if none rests. */
  #makeRoom(): boolean {
    if (this.#visits.size < this.#limits.connections) return true;
    const [longest] = this.#resting;
    if (!longest) return false;
    longest.socket.destroy();
    this.#leave(longest);
    return true;
  }

  #leave(visit: Visit): void {
    const { socket, address } = visit;
    this.#resting.delete(visit);
    // The visit may have been removed to make room before its socket closed.
    if (!this.#visits.delete(socket)) return;
    const left = (this.#perAddress.get(address) ?? 1) - 1;
    if (left > 0) this.#perAddress.set(address, left);
    else this.#perAddress.delete(address);
  }

  #sweep(): void {
    const now = performance.now();
    for (const visit of this.#visits.values()) if (visit.isOverdue(now)) visit.socket.destroy();
  }
}
