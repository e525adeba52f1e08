import type { ClientHttp2Session } from 'node:http2';
import { buildConnector, Client, Pool } from 'undici';
import type { Dispatcher } from 'undici';
import type { Upstream } from '#runtimes/router.ts';
import { upstreamKey } from '#runtimes/proxy/builtin/protocol.ts';
import type { ProxyLimits } from '#runtimes/proxy/limits.ts';

/** Milliseconds for which an upstream that refused a connection is skipped while there are others. */
const PASS_OVER_MS = 1_000;
/** Milliseconds for which a connection is kept if the upstream does not state its own time. */
const KEPT_MS = 1_000;
/** Milliseconds by which a connection is given up before its upstream would: a connection that closes just then loses the request. */
const MARGIN_MS = 1_000;
const LONGEST_KEPT_MS = 600_000;
/** Maximum number of bytes in the head of an answer. */
const LONGEST_HEAD = 64 << 10;

/** Error for a failed connection: nothing of the request was sent. */
export class ConnectFailed extends Error {
  constructor(cause: Error) {
    super(cause.message, { cause });
  }
}

function clientOptions({ connectMs, answerMs }: ProxyLimits): Client.Options {
  const connect = buildConnector({ timeout: connectMs });
  return {
    connect: (options, callback) =>
      connect(options, (...[error, socket]) => {
        if (error) callback(new ConnectFailed(error), null);
        else callback(null, socket);
      }),
    pipelining: 1,
    keepAliveTimeout: KEPT_MS,
    keepAliveMaxTimeout: LONGEST_KEPT_MS,
    keepAliveTimeoutThreshold: MARGIN_MS,
    headersTimeout: answerMs,
    // Event streams may be silent for any time.
    bodyTimeout: 0,
    maxHeaderSize: LONGEST_HEAD,
  };
}

/** Instance of a workload with its kept connections. */
export class UpstreamState {
  readonly key: string;
  readonly #origin: string;
  readonly #limits: ProxyLimits;
  readonly #onUnused: (state: UpstreamState) => void;
  #pool: Pool | undefined;
  /** Number of routes that name it. */
  #references = 0;
  #underWay = 0;
  #failedAt = -Infinity;
  #session: Promise<ClientHttp2Session> | undefined;
  #idle: (() => void)[] = [];

  constructor(upstream: Upstream, limits: ProxyLimits, onUnused: (state: UpstreamState) => void) {
    const host = upstream.address.includes(':') ? `[${upstream.address}]` : upstream.address;
    this.key = upstreamKey(upstream);
    this.#origin = `http://${host}:${upstream.port}`;
    this.#limits = limits;
    this.#onUnused = onUnused;
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

  /** Sends a request on a kept connection or a new one. */
  send(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    this.#pool ??= new Pool(this.#origin, clientOptions(this.#limits));
    this.#pool.dispatch(options, handler);
  }

  /** Sends a request on a new connection, which ends with the answer. */
  sendAlone(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    const client = new Client(this.#origin, clientOptions(this.#limits));
    client.dispatch({ ...options, reset: true }, handler);
    void client.close();
  }

  acquire(): void {
    this.#references++;
  }

  release(): void {
    this.#references--;
    this.#check();
  }

  /** Returns the HTTP/2 connection for gRPC, which all calls share; rejects if it cannot be established. */
  session(): Promise<ClientHttp2Session> {
    if (this.#session) return this.#session;
    const opening = openSession(this.#origin, this.#limits.connectMs);
    this.#session = opening;
    const forget = () => {
      if (this.#session === opening) this.#session = undefined;
    };
    opening.then((session) => session.once('goaway', forget).once('close', forget), forget);
    return opening;
  }

  /** Closes the kept connections once the requests under way have ended. */
  async close(): Promise<void> {
    void this.#pool?.close();
    const session = await this.#session?.catch(() => undefined);
    session?.close();
  }

  /** Resolves when no request is under way. */
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
  // Loaded on demand: most proxies never get a gRPC call, and HTTP/2 needs memory.
  const { connect } = await import('node:http2');
  return new Promise((resolve, reject) => {
    const session = connect(origin, { settings: { enablePush: false, maxHeaderListSize: LONGEST_HEAD } });
    const timer = setTimeout(() => session.destroy(new Error('no connection in time')), timeoutMs);
    session.once('connect', () => {
      clearTimeout(timer);
      resolve(session);
    });
    // Later errors end the calls under way; each call reports its own error.
    session.on('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
    session.on('close', () => reject(new Error('the connection was closed')));
  });
}

/** Upstreams of all routes. The same address is the same state, so that connections survive a change of routes. */
export class Upstreams {
  readonly #states = new Map<string, UpstreamState>();
  readonly #limits: ProxyLimits;

  constructor(limits: ProxyLimits) {
    this.#limits = limits;
  }

  /** Returns the state of an upstream, held until its `release`. */
  acquire(upstream: Upstream): UpstreamState {
    const key = upstreamKey(upstream);
    let state = this.#states.get(key);
    if (!state) this.#states.set(key, (state = new UpstreamState(upstream, this.#limits, this.#close)));
    state.acquire();
    return state;
  }

  underWay(): number {
    let sum = 0;
    for (const state of this.#states.values()) sum += state.underWay;
    return sum;
  }

  /** Waits until no request is under way to any of the upstreams (port 0: any port), at most `timeoutMs`. */
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

  /** Closes the kept connections of an upstream that no route names and no request uses. */
  readonly #close = (state: UpstreamState): void => {
    this.#states.delete(state.key);
    void state.close();
  };
}
