/** Errors of a runtime. */
import type { LogLine } from './observed.ts';

/** Number of log lines that an error carries of an instance that did not become ready. */
export const LAST_LINES = 200;

export type RuntimeErrorCode =
  'not_ready' | 'superseded' | 'build_failed' | 'refused' | 'unreachable' | 'aborted' | 'failed';

/** Failure of a runtime's method. `message` is for the user who reads the deployment's log. */
export class RuntimeError extends Error {
  readonly code: RuntimeErrorCode;
  /** Last log lines of an instance that was removed because of the error, the oldest first; not masked. */
  lastLines?: readonly LogLine[];

  /** Returns the same error with the instance's log lines. */
  withLines(lines: readonly LogLine[]): this {
    this.lastLines = lines;
    return this;
  }

  constructor(code: RuntimeErrorCode, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'RuntimeError';
    this.code = code;
  }
}

/** Error of a call that was ended by its signal. */
export const cancelled = (cause: unknown): RuntimeError => new RuntimeError('aborted', 'It was cancelled.', cause);

/** Throws RuntimeError `aborted` where the signal has ended the call. */
export function throwIfCancelled(signal: AbortSignal): void {
  if (signal.aborted) throw cancelled(signal.reason);
}
