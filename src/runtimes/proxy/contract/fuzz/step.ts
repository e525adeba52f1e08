/** Action of one side of a connection. Bytes are latin1; `pause` is in milliseconds. */
export type Step = { write: string } | { pause: number } | { end: true } | { reset: true };
