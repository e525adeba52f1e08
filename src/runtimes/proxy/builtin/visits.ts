import type { Socket } from 'node:net';
import { isWithin } from '#kernel/addresses.ts';
import type { ProxyLimits } from '#runtimes/proxy/limits.ts';

/** One connection of a visitor. */
export class Visit {
  readonly socket: Socket;
  readonly address: string;
  /** Whether what the peer says about its client counts. */
  readonly trusted: boolean;
  /** Requests whose answers are not complete. */
  underWay = 0;
  /** Whether a request was refused: nothing more is heard. */
  isRefused = false;
  /** Requests of HTTP/1.1 that came before the answer to the one that is served was complete (pipelining). */
  readonly #waiting: (() => void)[] = [];
  #isServing = false;
  #deadline: number;
  readonly #restMs: number;
  readonly #resting: Set<Visit>;

  /** `resting`: the visits without a request under way, the one that has rested longest first. */
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

  /** Number of requests that wait for the answers to those before them. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /**
   * Serves a request of HTTP/1.1 once the answers to those before it are complete: each request that is served may need a
   * connection to an upstream.
   */
  serveInTurn(serve: () => void): void {
    if (this.#isServing) return void this.#waiting.push(serve);
    this.#isServing = true;
    serve();
  }

  /** Serves the next request that waits, after the answer to the one before. */
  serveNext(): void {
    if (this.isRefused || this.socket.destroyed) this.#waiting.length = 0;
    const serve = this.#waiting.shift();
    this.#isServing = serve !== undefined;
    serve?.();
  }

  /** Whether it has no request under way, and none came in time. */
  isOverdue(now: number): boolean {
    return this.underWay === 0 && this.#deadline <= now;
  }
}

/**
 * Visitors' connections of every protocol, with their limits. Whatever trickles in on a connection, it is closed when no request
 * is whole in time: `headMs` for the first, `idleMs` and `headMs` for the others. When there are as many as may be, a new visitor
 * takes the place of the one that has rested longest, so that connections which only rest keep nobody out.
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

  /** Lets a connection in, or closes it: null. */
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
    // Read again: room may have been made by a connection of the same address.
    this.#perAddress.set(address, (this.#perAddress.get(address) ?? 0) + 1);
    socket.once('close', () => this.#leave(visit));
    return visit;
  }

  of(socket: Socket): Visit | undefined {
    return this.#visits.get(socket);
  }

  /** Closes the connections on which nothing is under way. */
  closeIdle(): void {
    for (const visit of this.#visits.values()) if (visit.underWay === 0) visit.socket.destroy();
  }

  /** Closes the connection that has rested longest if there are too many; false if none rests. */
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
    // Room may have been made of it before its socket closed.
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
