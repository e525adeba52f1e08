import { connect } from 'node:http2';
import type { ClientHttp2Session } from 'node:http2';
import { Pool } from 'undici';
import type { Upstream } from '#runtimes/router.ts';
import { upstreamKey } from '#runtimes/proxy/protocol.ts';

/** Times in milliseconds. */
export interface UpstreamTimes {
  /** Until the connection stands. */
  connectMs: number;
  /** Until the head of the response is there, from the end of the request. */
  answerMs: number;
}

export const DEFAULT_TIMES: UpstreamTimes = { connectMs: 5_000, answerMs: 300_000 };

/** How long an upstream that refused a connection is passed over while there are others. */
const PASS_OVER_MS = 1_000;

/** One instance of a workload with its kept connections. */
export class UpstreamState {
  readonly key: string;
  readonly pool: Pool;
  readonly #onUnused: (state: UpstreamState) => void;
  /** Routes that name it. */
  #references = 0;
  #underWay = 0;
  #failedAt = -Infinity;
  readonly #times: UpstreamTimes;
  readonly #origin: string;
  #session: Promise<ClientHttp2Session> | undefined;
  #idle: (() => void)[] = [];

  constructor(upstream: Upstream, times: UpstreamTimes, onUnused: (state: UpstreamState) => void) {
    this.#onUnused = onUnused;
    this.key = upstreamKey(upstream);
    const host = upstream.address.includes(':') ? `[${upstream.address}]` : upstream.address;
    // Connections are kept 4 s, or as long as the upstream says: longer than it keeps them would lose requests.
    this.#times = times;
    this.#origin = `http://${host}:${upstream.port}`;
    this.pool = new Pool(this.#origin, {
      pipelining: 1,
      connect: { timeout: times.connectMs },
      headersTimeout: times.answerMs,
      bodyTimeout: 0,
      keepAliveTimeout: 4_000,
    });
  }

  get underWay(): number {
    return this.#underWay;
  }

  begin(): void {
    this.#underWay++;
  }

  end(): void {
    if (--this.#underWay > 0) return;
    for (const resolve of this.#idle.splice(0)) resolve();
    this.#check();
  }

  acquire(): void {
    this.#references++;
  }

  release(): void {
    this.#references--;
    this.#check();
  }

  /** The HTTP/2 connection for gRPC, which takes all calls; rejects when none comes about. */
  session(): Promise<ClientHttp2Session> {
    if (this.#session) return this.#session;
    const opening = openSession(this.#origin, this.#times.connectMs);
    this.#session = opening;
    const forget = () => {
      if (this.#session === opening) this.#session = undefined;
    };
    opening.then((session) => session.once('goaway', forget).once('close', forget), forget);
    return opening;
  }

  /** Closes the kept connections once what is under way has ended. */
  async close(): Promise<void> {
    const session = await this.#session?.catch(() => undefined);
    session?.close();
    await this.pool.close();
  }

  /** Resolves when nothing is under way. */
  idle(): Promise<void> {
    if (this.#underWay === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  connectFailed(): void {
    this.#failedAt = performance.now();
  }

  isPassedOver(): boolean {
    return performance.now() - this.#failedAt < PASS_OVER_MS;
  }

  #check(): void {
    if (this.#references === 0 && this.#underWay === 0) this.#onUnused(this);
  }
}

function openSession(origin: string, timeoutMs: number): Promise<ClientHttp2Session> {
  return new Promise((resolve, reject) => {
    const session = connect(origin);
    const timer = setTimeout(() => session.destroy(new Error('no connection in time')), timeoutMs);
    session.once('connect', () => {
      clearTimeout(timer);
      resolve(session);
    });
    // Later errors end the calls under way, each of which has its own error.
    session.on('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
  });
}

/** The upstreams of all routes; the same address is the same state, so that connections are kept over a change of routes. */
export class Upstreams {
  readonly #states = new Map<string, UpstreamState>();
  readonly #times: UpstreamTimes;

  constructor(times: UpstreamTimes) {
    this.#times = times;
  }

  /** The state of an upstream, held until its `release`. */
  acquire(upstream: Upstream): UpstreamState {
    const key = upstreamKey(upstream);
    let state = this.#states.get(key);
    if (!state) this.#states.set(key, (state = new UpstreamState(upstream, this.#times, this.#close)));
    state.acquire();
    return state;
  }

  underWay(): number {
    let sum = 0;
    for (const state of this.#states.values()) sum += state.underWay;
    return sum;
  }

  /** Waits until nothing is under way to any of the upstreams, at most `timeoutMs`. */
  async drained(upstreams: Upstream[], timeoutMs: number): Promise<void> {
    const waits = upstreams.map(async (upstream) => this.#states.get(upstreamKey(upstream))?.idle());
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, timeoutMs);
    await Promise.race([Promise.all(waits), promise]);
    clearTimeout(timer);
  }

  /** No route names it any more and nothing is under way: its kept connections go. */
  readonly #close = (state: UpstreamState): void => {
    this.#states.delete(state.key);
    void state.close();
  };
}
