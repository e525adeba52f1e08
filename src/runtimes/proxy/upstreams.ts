import type { ClientHttp2Session } from 'node:http2';
import type { Upstream } from '#runtimes/router.ts';
import type { ResponseHead } from '#runtimes/proxy/heads.ts';
import { upstreamKey } from '#runtimes/proxy/protocol.ts';
import { UpstreamConnection } from '#runtimes/proxy/upstream-connection.ts';
import type { Attempt } from '#runtimes/proxy/upstream-connection.ts';

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

/** How long a connection is kept where the upstream says nothing about that. Node's own servers close after 5 s. */
const KEPT_MS = 4_000;
/** Where it says nothing, a request that can't be sent twice goes only over a connection that was used so shortly before. */
const RECENT_MS = 1_000;
/** A connection is given up so long before its upstream would: one that closes just then loses the request. */
const MARGIN_MS = 1_000;
const LONGEST_KEPT_MS = 600_000;

/** Which kept connections a request may use: any; those that its upstream will hardly have closed meanwhile; none. */
export type Reuse = 'any' | 'recent' | 'none';

/** One instance of a workload with its kept connections. */
export class UpstreamState {
  readonly key: string;
  readonly #host: string;
  readonly #port: number;
  readonly #connections = new Set<UpstreamConnection>();
  /** Kept connections, the one used last at the end, each with the time until which it is kept as its deadline. */
  readonly #kept: UpstreamConnection[] = [];
  readonly #onUnused: (state: UpstreamState) => void;
  /** Routes that name it. */
  #references = 0;
  #underWay = 0;
  #failedAt = -Infinity;
  readonly #times: UpstreamTimes;
  #session: Promise<ClientHttp2Session> | undefined;
  #idle: (() => void)[] = [];

  constructor(upstream: Upstream, times: UpstreamTimes, onUnused: (state: UpstreamState) => void) {
    this.#onUnused = onUnused;
    this.key = upstreamKey(upstream);
    this.#host = upstream.address;
    this.#port = upstream.port;
    this.#times = times;
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

  /** Takes a request: on a kept connection at once, else on a new one as soon as it stands (`Attempt.onReady`). */
  open(attempt: Attempt, which: Reuse): void {
    const now = performance.now();
    const kept = which === 'none' ? undefined : this.#takeKept(which, now);
    if (kept) return kept.use(attempt);
    const place = { host: this.#host, port: this.#port };
    const connection = new UpstreamConnection(place, attempt, this.#keep, this.#forget);
    connection.deadline = now + this.#times.connectMs;
    this.#connections.add(connection);
  }

  /** The kept connection that was used last, if it may be used again. */
  #takeKept(which: Reuse, now: number): UpstreamConnection | undefined {
    for (let kept = this.#kept.at(-1); kept; kept = this.#kept.at(-1)) {
      const isGood = kept.deadline > now && kept.isUsable;
      // Those below it were used longer ago.
      if (isGood && which === 'recent' && kept.recentUntil <= now) return undefined;
      this.#kept.pop();
      if (isGood) {
        kept.deadline = Infinity;
        return kept;
      }
      kept.destroy();
    }
    return undefined;
  }

  /** When an answer to what was sent now has to begin. */
  answerDeadline(): number {
    return performance.now() + this.#times.answerMs;
  }

  /** Ends what is past its deadline. */
  sweep(now: number): void {
    for (const connection of this.#connections) if (connection.deadline <= now) connection.expire();
  }

  readonly #keep = (connection: UpstreamConnection, { keptMs }: ResponseHead): void => {
    const ms = keptMs === undefined ? KEPT_MS : Math.min(keptMs, LONGEST_KEPT_MS) - MARGIN_MS;
    if (ms <= 0 || this.#references === 0) return connection.destroy();
    const now = performance.now();
    connection.deadline = now + ms;
    connection.recentUntil = keptMs === undefined ? now + RECENT_MS : connection.deadline;
    this.#kept.push(connection);
  };

  readonly #forget = (connection: UpstreamConnection): void => {
    this.#connections.delete(connection);
    const at = this.#kept.indexOf(connection);
    if (at !== -1) this.#kept.splice(at, 1);
  };

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
    const host = this.#host.includes(':') ? `[${this.#host}]` : this.#host;
    const opening = openSession(`http://${host}:${this.#port}`, this.#times.connectMs);
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
    for (const connection of this.#kept.splice(0)) connection.destroy();
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

async function openSession(origin: string, timeoutMs: number): Promise<ClientHttp2Session> {
  // Most proxies never see a call of gRPC, and HTTP/2 takes its memory.
  const { connect } = await import('node:http2');
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
    const every = Math.min(1_000, times.connectMs / 4, times.answerMs / 4);
    setInterval(() => {
      const now = performance.now();
      for (const state of this.#states.values()) state.sweep(now);
    }, every).unref();
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

  /** Waits until nothing is under way to any of the upstreams (port 0: any port), at most `timeoutMs`. */
  async drained(upstreams: Upstream[], timeoutMs: number): Promise<void> {
    const waits = upstreams.flatMap((upstream) => this.#at(upstream).map((state) => state.idle()));
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, timeoutMs);
    await Promise.race([Promise.all(waits), promise]);
    clearTimeout(timer);
  }

  #at({ address, port }: Upstream): UpstreamState[] {
    if (port !== 0) return [this.#states.get(upstreamKey({ address, port })) ?? []].flat();
    const everyPort = upstreamKey({ address, port }).slice(0, -1);
    return [...this.#states.values()].filter(({ key }) => key.startsWith(everyPort));
  }

  /** No route names it any more and nothing is under way: its kept connections go. */
  readonly #close = (state: UpstreamState): void => {
    this.#states.delete(state.key);
    void state.close();
  };
}
