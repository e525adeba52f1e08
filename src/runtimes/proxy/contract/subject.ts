import type { ProxyLimits } from '#runtimes/proxy/limits.ts';
import type { Router } from '#runtimes/router.ts';

/** Start of a proxy under test. */
export interface ProxyStart {
  /** Folder of the proxy. A second start in the same folder adopts its routes, port and, if it still runs, its process. */
  directory: string;
  /** Limits that differ from the defaults. */
  limits: Partial<ProxyLimits>;
  /** Addresses and networks whose `X-Forwarded-*` headers count. */
  trustedProxies: string[];
  /** Name of the release; another name in the same folder replaces the proxy's process or configuration without a lost request. */
  release: string;
}

/** Proxy under test, listening on 127.0.0.1 on a port that it chose. */
export interface ProxySubject {
  router: Router & { close(): Promise<void> };
  /** Returns the process that serves at present. */
  pid(): Promise<number>;
  /**
   * Returns the lines in which the proxy's processes reported their own faults since the start: uncaught exceptions, panics, crashes.
   * Refused requests and broken upstreams are no faults.
   */
  faults(): Promise<string[]>;
  /** Ends the processes; the folder stays. */
  stop(): Promise<void>;
}

export type StartProxy = (start: ProxyStart) => Promise<ProxySubject>;

/** Guarantees that not every proxy gives. */
export type OptionalGuarantee =
  /** A change of routes closes no resting connection; without this guarantee visitors repeat interrupted requests, as browsers do. */
  | 'restingConnections'
  /** A change of routes resets no connection that waits to be accepted. */
  | 'waitingConnections'
  /** An answer that comes before the whole body of its request is passed on at once. */
  | 'earlyAnswers'
  /** A request with a body is sent to another upstream when one takes no connections. */
  | 'bodiesSentAgain'
  /** A visitor may end its side of the connection before the answer. */
  | 'halfClosed'
  /** Bytes that a visitor sends in the packet of its websocket handshake reach the upstream. */
  | 'earlyBytes'
  /** HTTP/2 without TLS is accepted for services of HTTP, too. */
  | 'plainHttp2'
  /** Connections from one address are limited. */
  | 'addressLimit'
  /** All connections together are limited. */
  | 'connectionLimit'
  /** `X-Forwarded-For` precedes the headers of the client. */
  | 'forwardedFirst'
  /** Requests with both a length and chunks, or with chunks in HTTP/1.0, are refused. */
  | 'strictFraming'
  /**
   * Malformed answers are replaced by 502: with both a length and chunks, with a space in a field's name, with a NUL, or with an
   * unrequested change of protocol.
   */
  | 'strictAnswers'
  /** An answer in chunks that breaks off is cut off for the visitor, too. */
  | 'cutChunks'
  /** A head of more lines than `headLines` is refused. */
  | 'lineLimit'
  /** Trailers of an HTTP/1.1 answer reach the visitor. */
  | 'trailers'
  /** An upload that stops is ended after `stallMs`. */
  | 'stalls';

export interface ProxyContractOptions {
  /** Milliseconds for one test. */
  timeoutMs?: number;
  /** Guarantees that this proxy does not give, with the reason. */
  without?: Partial<Record<OptionalGuarantee, string>>;
}
