import { AppError, badGateway } from '#kernel/errors.ts';
import { isDatabaseError, type Database } from '#platform/database/index.ts';
import type { EventStreams } from '#platform/events/stream.ts';
import { readLastLines } from '#deployments/index.ts';
import { SEARCHED, selectKept, toLogOptions, type Selection } from '#services/capabilities/service/logs/selection.ts';
import { findServiceById } from '#services/service/queries.ts';
import type { ServiceNeeds } from '#services/service/needs.ts';
import { clusterOf, type ServiceTarget } from '#services/service/target.ts';
import { RuntimeError, type Handle, type LogLine, type Runtime } from '#runtimes/runtime.ts';

/** Service whose log is followed. */
export interface Followed {
  db: Database;
  target: ServiceTarget;
}

export interface Following {
  /** Number of lines from before that come first. */
  tail: number;
  /** Counts only these lines for `tail`, among the newest that are searched; others may come between them. */
  isWanted?: ((at: string, text: string) => boolean) | undefined;
  signal: AbortSignal;
}

/** Returns the number of lines from before that are read: more where only some are wanted. */
export const tailOf = ({ text }: Selection, tail: number): number => (text === undefined ? tail : SEARCHED);

/** Returns the lines from the first one on of the last `tail` that are wanted; the last line if none is. */
export function lastWanted<T>(lines: T[], isWanted: (line: T) => boolean, tail: number): T[] {
  let first = lines.length - 1;
  for (let at = first, count = 0; at >= 0 && count < tail; at--) {
    if (!isWanted(lines[at]!)) continue;
    first = at;
    count++;
  }
  return lines.slice(Math.max(0, first));
}

/**
 * Yields the last lines of a service's instances, then new ones, until the signal is aborted. Lines of later deployments are included; a
 * service that was never deployed is waited for. `text` of the selection is not looked at. Throws 502 if the cluster does not answer.
 */
export async function* instanceLines(
  followed: Followed,
  { runtime, streams }: { runtime: Runtime; streams: EventStreams },
  selection: Selection,
  { tail, signal }: Following,
): AsyncGenerator<LogLine, void, undefined> {
  const withoutText = { ...selection, text: undefined };
  let handle = followed.target.handle as Handle | null;
  if (handle === null) {
    yield* await keptLines(followed, withoutText);
    handle = await awaitHandle(followed, streams, signal);
    if (handle === null) return;
  }
  const options = { ...toLogOptions(selection), signal };
  let isEmpty = true;
  const newest = runtime.logs(handle, { ...options, tail: 1, follow: false });
  for await (const _line of fromCluster(newest, signal)) isEmpty = false;
  if (isEmpty) yield* await keptLines(followed, withoutText);
  yield* fromCluster(runtime.logs(handle, { ...options, tail, follow: true }), signal);
}

/** Reads the stored lines of a service's instances, at most the newest that are searched, oldest first. Throws 502 as `instanceLines` does. */
export async function readStoredLines(
  { target }: Followed,
  runtime: Runtime,
  selection: Selection,
  signal: AbortSignal,
): Promise<LogLine[]> {
  if (!target.handle) return [];
  const options = { ...toLogOptions(selection), tail: SEARCHED, follow: false, signal };
  const lines: LogLine[] = [];
  for await (const line of fromCluster(runtime.logs(target.handle as Handle, options), signal)) lines.push(line);
  return lines;
}

/** Creates the 502 for a log that a cluster does not give. */
const unreadable = (error: unknown) =>
  badGateway(`The log cannot be read from the cluster: ${(error as Error).message}`, error);

/** Returns the runtime that has the log of a service. Throws `OnOtherMachine` where another machine has it, and 502 if it cannot be asked. */
export async function runtimeOfLog(needs: Pick<ServiceNeeds, 'runtimeOf'>, target: ServiceTarget): Promise<Runtime> {
  try {
    return await needs.runtimeOf(clusterOf(target));
  } catch (error) {
    throw error instanceof RuntimeError ? unreadable(error) : error;
  }
}

/**
 * Yields the lines that a runtime reads, up to the abort of the signal. Throws 502 with the reason if the cluster fails; an error of the database
 * is none of the cluster, and keeps its own answer.
 */
export async function* fromCluster(
  lines: AsyncIterable<LogLine>,
  signal: AbortSignal,
): AsyncGenerator<LogLine, void, undefined> {
  try {
    yield* lines;
  } catch (error) {
    if (signal.aborted) return;
    throw error instanceof AppError || isDatabaseError(error) ? error : unreadable(error);
  }
}

/** Returns the last lines of the newest instance that did not become ready. */
const keptLines = async ({ db, target }: Followed, selection: Selection): Promise<LogLine[]> =>
  selectKept(await readLastLines(db, target, target.id), selection);

/** Waits for the first deployment of a service and returns its handle; null if the client disconnects before. */
async function awaitHandle(
  { db, target }: Followed,
  streams: EventStreams,
  signal: AbortSignal,
): Promise<Handle | null> {
  const filter = {
    organizationId: target.organizationId,
    environmentId: target.environmentId,
    serviceId: target.id,
    types: ['service-state', 'step'] as const,
  };
  for await (const _items of streams.open(filter, undefined, () => true, signal)) {
    const row = await findServiceById(db, [target.organizationId], target.id);
    if (row?.handle) return row.handle as unknown as Handle;
  }
  return null;
}
