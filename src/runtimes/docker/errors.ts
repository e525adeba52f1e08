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

/** HTTP status that the engine answered with, if the error is such an answer. */
export const statusOf = (error: unknown): number | undefined => (error as { statusCode?: number }).statusCode;

/** What the engine said, without the client's own words around it. */
export function engineMessage(error: unknown): string {
  const said = (error as { json?: { message?: string } }).json?.message;
  return said ?? (error instanceof Error ? error.message : String(error)).trim();
}

/** What the engine says, by how far a removal has come. */
const REMOVED = /RWLayer of container \S+ is unexpectedly nil|error processing tar file: .*no such file or directory/;

/** Whether the engine could not look into a container for its being removed: there are no files of it any more. */
export const isBeingRemoved = (error: unknown): boolean =>
  statusOf(error) === 500 && REMOVED.test(engineMessage(error));

/** Whether the same call may succeed a little later: the engine is away, or could not do it as it is now. */
export const mayPass = (error: unknown): boolean =>
  asRuntimeError(error).code === 'unreachable' || (statusOf(error) ?? 0) >= 500;

/** Makes a RuntimeError of whatever a call to the engine threw. */
export function asRuntimeError(error: unknown, signal?: AbortSignal): RuntimeError {
  if (error instanceof RuntimeError) return error;
  if (signal?.aborted) return cancelled(error);
  const code = (error as NodeJS.ErrnoException).code;
  if (code !== undefined && UNREACHABLE.has(code))
    return new RuntimeError('unreachable', `The container engine does not answer (${code}): is it running?`, error);
  return new RuntimeError('failed', `The container engine refused: ${engineMessage(error)}`, error);
}

/** Runs a call whose object may be gone already: a 404 (or another given status) answers null. */
export async function unless<T>(statuses: number[], call: Promise<T>): Promise<T | null> {
  try {
    return await call;
  } catch (error) {
    if (statuses.includes(statusOf(error) ?? 0)) return null;
    throw error;
  }
}
