import { RuntimeError, cancelled } from '#runtimes/runtime.ts';

const UNREACHABLE = new Set([
  'ENOENT',
  'ECONNREFUSED',
  'EACCES',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EHOSTUNREACH',
]);

/** HTTP status of the engine's answer, if the error is such an answer. */
export const statusOf = (error: unknown): number | undefined => (error as { statusCode?: number }).statusCode;

/** Returns the engine's own message, without the text that the client puts around it. */
export function engineMessage(error: unknown): string {
  const said = (error as { json?: { message?: string } }).json?.message;
  return said ?? (error instanceof Error ? error.message : String(error)).trim();
}

/** Engine messages for a container that is being removed, by the progress of the removal. */
const REMOVED = /RWLayer of container \S+ is unexpectedly nil|error processing tar file: .*no such file or directory/;

/** Returns whether the engine could not read from a container because it is being removed: its files are gone. */
export const isBeingRemoved = (error: unknown): boolean =>
  statusOf(error) === 500 && REMOVED.test(engineMessage(error));

/** Returns whether the same call may succeed later: the engine is away, or fails at the moment. */
export const mayPass = (error: unknown): boolean =>
  asRuntimeError(error).code === 'unreachable' || (statusOf(error) ?? 0) >= 500;

/** Converts an error of a call to the engine to a RuntimeError. */
export function asRuntimeError(error: unknown, signal?: AbortSignal): RuntimeError {
  if (error instanceof RuntimeError) return error;
  if (signal?.aborted) return cancelled(error);
  const code = (error as NodeJS.ErrnoException).code;
  if (code !== undefined && UNREACHABLE.has(code))
    return new RuntimeError('unreachable', `The container engine does not answer (${code}): is it running?`, error);
  return new RuntimeError('failed', `The container engine refused: ${engineMessage(error)}`, error);
}

/** Runs a call whose object may be gone already; returns null for a 404 (or another given status). */
export async function unless<T>(statuses: number[], call: Promise<T>): Promise<T | null> {
  try {
    return await call;
  } catch (error) {
    if (statuses.includes(statusOf(error) ?? 0)) return null;
    throw error;
  }
}
