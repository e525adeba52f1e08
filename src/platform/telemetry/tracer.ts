/** What a span is described by. Never what users keep secret: no query strings, bodies or variables. */
type Attributes = Record<string, string | number | boolean>;

/** A piece of work that is under way, in a trace. */
export interface Span {
  /** A piece of this one's work. */
  child(name: string, attributes?: Attributes): Span;
  set(attributes: Attributes): void;
  /** It failed, with a message that may be shown. */
  fail(message: string): void;
  end(): void;
}

/** Where traces go. Handed to who makes them; there is no global one. */
export interface Tracer {
  /** Begins a trace, or goes on with the caller's where `traceparent` is a valid header of W3C Trace Context. */
  start(name: string, options: { kind: 'server' | 'internal'; attributes: Attributes; traceparent?: string }): Span;
  /** Sends what is left. Does not throw: a collector that is away must not keep the program from ending. */
  close(): Promise<void>;
}
