/** Attributes of a span. Never what users keep secret: no query strings, bodies or variables. */
type Attributes = Record<string, string | number | boolean>;

/** Work under way, as a part of a trace. */
export interface Span {
  /** Begins a span for a part of this one's work. */
  child(name: string, attributes?: Attributes): Span;
  set(attributes: Attributes): void;
  /** Marks the span as failed, with a message that may be shown. */
  fail(message: string): void;
  end(): void;
}

/** Destination of traces. Passed to its users; there is no global one. */
export interface Tracer {
  /** Begins a trace, or goes on with the caller's where `traceparent` is a valid header of W3C Trace Context. */
  start(name: string, options: { kind: 'server' | 'internal'; attributes: Attributes; traceparent?: string }): Span;
  /** Sends what is left. Does not throw: a collector that is away must not keep the program from ending. */
  close(): Promise<void>;
}
