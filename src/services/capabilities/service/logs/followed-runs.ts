import { setTimeout as sleep } from 'node:timers/promises';
import {
  listExecutions,
  listFollowedExecutions,
  readExecutionLog,
  readExecutionLogAfter,
  type FollowedExecution,
  type PlacedLine,
} from '#deployments/index.ts';
import { lastWanted, type Followed, type Following } from '#services/capabilities/service/logs/followed.ts';
import { SEARCHED } from '#services/capabilities/service/logs/selection.ts';
import { START, type RunPosition } from '#services/capabilities/service/logs/run-position.ts';

/** Milliseconds between two reads of new lines of executions, which no event announces. */
const LOOK_MS = 1_000;
/** Newest runs that are read at once: as many as are looked at (`listFollowedExecutions`). */
const RUNS_AT_ONCE = 64;

/** Line of a run. */
export interface RunLine {
  /** RFC 3339 with milliseconds. */
  at: string;
  text: string;
  run: string;
}

/**
 * Yields the lines of a service's runs until the signal is aborted. The last lines of the newest run come first, then new ones of each run that goes
 * on beside it or begins later. `position` is behind the line that was yielded last. From a position that names runs it goes on: null comes first
 * where lines may be missing, since a run is no longer kept or there are too many. Of a step that is taken up again long after its end, the lines
 * repeat.
 */
export async function* runLines(
  followed: Followed,
  position: RunPosition,
  following: Following,
): AsyncGenerator<RunLine | null, void, undefined> {
  const { signal } = following;
  const isResumed = position.newest > 0;
  if (!isResumed) yield* begin(followed, position, following);
  /** Runs that have ended and are read to their end. */
  const read = new Set<string>();
  for (let isFirst = isResumed; !signal.aborted; isFirst = false) {
    const runs = await runsFrom(followed, position);
    const known = new Set(runs.map(({ id }) => id));
    const isMissing = position.runs.some((id) => !known.has(id)) || runs.length === RUNS_AT_ONCE;
    if (isFirst && isMissing) yield null;
    for (const id of position.runs) if (!known.has(id)) position.forget(id);
    for (const run of runs) {
      position.advance(run.created_at);
      if (run.is_over && read.has(run.id)) continue;
      yield* newLines(followed, run, position);
      if (run.is_over) read.add(run.id);
    }
    for (const run of runs) if (run.is_over && run.created_at.getTime() < position.newest) position.forget(run.id);
    await sleep(LOOK_MS, undefined, { signal }).catch((error: Error) => {
      if (error.name !== 'AbortError') throw error;
    });
  }
}

/** Returns the runs that may have new lines, oldest first. */
const runsFrom = async ({ db, target }: Followed, position: RunPosition): Promise<FollowedExecution[]> => {
  const runs = { from: new Date(position.newest), ids: position.runs };
  return (await listFollowedExecutions(db, target, target.id, runs).limit(RUNS_AT_ONCE).execute()).reverse();
};

/** Yields the last lines of the newest run. Runs that go on beside it are followed from their present end. */
async function* begin(
  followed: Followed,
  position: RunPosition,
  { tail, isWanted }: Following,
): AsyncGenerator<RunLine, void, undefined> {
  const { db, target } = followed;
  const newest = await listExecutions(db, target, target.id).limit(1).executeTakeFirst();
  if (!newest) return;
  position.advance(newest.created_at);
  for (const run of await runsFrom(followed, position)) {
    if (run.created_at >= newest.created_at || run.state === 'WAITING') continue;
    const { last } = await readExecutionLog(db, target, logOf(followed, run), 1);
    position.set(run.id, { sequence: last + 1, lines: 0 });
  }
  const { lines, last } = await readExecutionLog(db, target, logOf(followed, newest), isWanted ? SEARCHED : tail);
  const chosen = isWanted ? lastWanted(lines, ({ at, text }) => isWanted(at, text), tail) : lines;
  yield* placed(newest.id, chosen, position);
  position.set(newest.id, { sequence: last + 1, lines: 0 });
}

/** Yields the lines of a run behind the position. */
async function* newLines(
  followed: Followed,
  run: FollowedExecution,
  position: RunPosition,
): AsyncGenerator<RunLine, void, undefined> {
  const { db, target } = followed;
  for (let hasMore = true; hasMore;) {
    const { sequence, lines } = position.placeIn(run.id) ?? START;
    const part = await readExecutionLogAfter(db, target, logOf(followed, run), sequence - 1);
    const unsent = part.lines.filter((line) => line.sequence > sequence || line.index >= lines);
    yield* placed(run.id, unsent, position);
    if (part.last >= sequence) position.set(run.id, { sequence: part.last + 1, lines: 0 });
    else position.set(run.id, { sequence, lines });
    hasMore = part.hasMore;
  }
}

function* placed(run: string, lines: PlacedLine[], position: RunPosition): Generator<RunLine, void, undefined> {
  for (const { at, text, sequence, index } of lines) {
    position.set(run, { sequence, lines: index + 1 });
    yield { at, text, run };
  }
}

const logOf = ({ target }: Followed, { id, deployment_id }: { id: string; deployment_id: string | null }) => ({
  id,
  deployment_id,
  service_id: target.id,
});
