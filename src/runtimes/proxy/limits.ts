/** Limits that protect a proxy from strangers and workloads. Times in milliseconds. */
export interface ProxyLimits {
  /** Time for the head of a request, however slowly bytes arrive; from the opening of its connection or its first byte. */
  headMs: number;
  /** Time for which a connection without a request stays open after an answer. */
  idleMs: number;
  /** Longest pause in the body of a request, and longest time for which a visitor reads nothing of its answer. */
  stallMs: number;
  /** Time until the head of an answer arrives, from the end of the request. */
  answerMs: number;
  /** Time until a connection to an upstream is established. */
  connectMs: number;
  /** Bytes in the head of a request. */
  headBytes: number;
  /** Header lines in the head of a request. */
  headLines: number;
  /** Number of concurrent connections of visitors. */
  connections: number;
  /** Number of concurrent connections from one address; trusted proxies may have more. */
  connectionsPerAddress: number;
  /** Number of HTTP/1.1 requests that may wait on one connection for earlier answers; more end the connection. */
  pipelined: number;
  /** Number of concurrent streams on one HTTP/2 connection. */
  streams: number;
}

export const DEFAULT_LIMITS: ProxyLimits = {
  headMs: 20_000,
  idleMs: 65_000,
  stallMs: 300_000,
  answerMs: 300_000,
  connectMs: 5_000,
  headBytes: 32 << 10,
  headLines: 100,
  connections: 20_000,
  connectionsPerAddress: 2_000,
  pipelined: 20,
  streams: 100,
};
