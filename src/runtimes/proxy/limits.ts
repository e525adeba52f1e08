/** Limits that a proxy holds against strangers and workloads. Times in milliseconds. */
export interface ProxyLimits {
  /** Time for the head of a request, from the opening of its connection or its first byte. Holds however slowly bytes trickle in. */
  headMs: number;
  /** Time for which a connection without a request stays open after an answer. */
  idleMs: number;
  /** Longest pause in the body of a request, and longest time for which a visitor takes nothing of its answer. */
  stallMs: number;
  /** Time until the head of an answer arrives, from the end of the request. */
  answerMs: number;
  /** Time until a connection to an upstream stands. */
  connectMs: number;
  /** Bytes in the head of a request. */
  headBytes: number;
  /** Header lines in the head of a request. */
  headLines: number;
  /** Visitors' connections at once. */
  connections: number;
  /** Visitors' connections at once from one address; trusted proxies may have more. */
  connectionsPerAddress: number;
  /** Requests of HTTP/1.1 that may wait on one connection for the answers to those before them; more end the connection. */
  pipelined: number;
  /** Streams at once on one HTTP/2 connection. */
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
