import { RuntimeError, cancelled } from '#runtimes/runtime.ts';

/** Answer of the API server that is no success. */
export class ApiError extends Error {
  readonly status: number;
  /** Reason in the words of Kubernetes: `NotFound`, `AlreadyExists`, `Conflict`, `Forbidden`, … */
  readonly reason: string;

  constructor(status: number, reason: string, message: string) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
    this.reason = reason;
  }
}

/** Failure to read an answer that is longer than may be read. The same call gets the same answer again. */
export class TooLargeError extends Error {
  constructor(call: string, mostBytes: number) {
    super(
      `The cluster's answer to ${call} has more than ${mostBytes / 2 ** 20} MiB and is not read: remove what fills the objects there.`,
    );
    this.name = 'TooLargeError';
  }
}

/** Runs a call whose object may be gone; returns null for 404. */
export async function unlessGone<T>(call: Promise<T>): Promise<T | null> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  }
}

/** Returns whether a write met another one: the object has changed since it was read, or was created meanwhile. */
export const isConflict = (error: unknown): boolean => error instanceof ApiError && error.status === 409;

/** Returns whether the server of an aggregated API does not answer the API server. */
export const isUnavailable = (error: unknown): boolean => error instanceof ApiError && error.status === 503;

/** Remedies for refusals of the API server, by its reason. */
const REMEDIES: Record<string, string> = {
  Unauthorized: 'The cluster does not accept the credentials of its kubeconfig: replace the kubeconfig.',
  Forbidden: 'Give the account of the kubeconfig the rights that `quarterdeck cluster rbac` prints.',
};

/** Converts an error of a call to the API server to a RuntimeError. */
export function asRuntimeError(error: unknown, signal?: AbortSignal): RuntimeError {
  if (error instanceof RuntimeError) return error;
  if (signal?.aborted) return cancelled(error);
  if (error instanceof ApiError) {
    const passes = error.status >= 500 || error.status === 429;
    const remedy = REMEDIES[error.reason] ?? '';
    return new RuntimeError(
      passes ? 'unreachable' : 'failed',
      `The cluster refused: ${error.message} ${remedy}`.trim(),
      error,
    );
  }
  if (error instanceof TooLargeError) return new RuntimeError('failed', error.message, error);
  const why = error instanceof Error ? error.message : String(error);
  return new RuntimeError('unreachable', `The cluster does not answer: ${why}.`, error);
}

/** Returns a failure with what failed after it behind its reason. */
export function alsoFailed(failure: RuntimeError, sentence: string): RuntimeError {
  const both = new RuntimeError(failure.code, `${failure.message} ${sentence}`, failure);
  return failure.lastLines ? both.withLines(failure.lastLines) : both;
}
