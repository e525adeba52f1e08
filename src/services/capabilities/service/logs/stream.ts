import { badGateway, invalidField } from '#kernel/errors.ts';
import { anySignal } from '#kernel/lease-signal.ts';
import type { EventStreams } from '#platform/events/stream.ts';
import { serialize } from '#platform/http/compile.ts';
import type { Call } from '#platform/http/route.ts';
import { block, heartbeat, OPENING } from '#platform/http/server-sent-events.ts';
import type { Slots } from '#platform/http/slots.ts';
import { EventStreamAnswer } from '#platform/http/stream.ts';
import { Backlog } from '#services/capabilities/service/logs/backlog.ts';
import {
  instanceLines,
  lastWanted,
  readStoredLines,
  runtimeOfLog,
  tailOf,
} from '#services/capabilities/service/logs/followed.ts';
import { runLines } from '#services/capabilities/service/logs/followed-runs.ts';
import { LineIds } from '#services/capabilities/service/logs/line-id.ts';
import { LogPosition } from '#services/capabilities/service/logs/position.ts';
import { RunPosition } from '#services/capabilities/service/logs/run-position.ts';
import { ServiceLog, SkippedEvent } from '#services/capabilities/service/logs/schema.ts';
import {
  hasText,
  isChosen,
  refuseInstances,
  SEARCHED,
  type Selection,
} from '#services/capabilities/service/logs/selection.ts';
import { toRunLog, toServiceLog } from '#services/capabilities/service/logs/view.ts';
import type { ServiceNeeds } from '#services/service/needs.ts';
import type { ServiceTarget } from '#services/service/target.ts';
import type { LogLine } from '#runtimes/runtime.ts';

/** Milliseconds without a line after which a comment is sent. */
const HEARTBEAT_MS = 15_000;

export interface FollowParts {
  needs: Pick<ServiceNeeds, 'runtimeOf'>;
  streams: EventStreams;
  slots: Slots;
  /** True if the service runs to an end. */
  hasRuns: boolean;
  /** Lines from before the opening that are sent first. */
  tail: number;
}

type FollowQueryValues = Selection & { lastEventId?: string };

type FollowCall = Call<ServiceTarget, Record<string, string>, FollowQueryValues>;

/** Line of a log before it is sent, with the position behind it, or the place where lines are missing. `event` is null for one not wanted. */
type Sending = { at: string; id: string; event: (() => string) | null } | { missing: null };

/** Lines to send, in order. */
type Source = (signal: AbortSignal) => AsyncIterable<Sending>;

/** Opens the stream of a service's log. Every refusal is thrown here, before the answer begins. */
export async function openLogStream(call: FollowCall, parts: FollowParts): Promise<EventStreamAnswer> {
  const { query } = call;
  if (query.previous) throw invalidField('previous', 'must be left out with follow: what has ended gets no new lines');
  const position: { text?: string | undefined } = {};
  const source = parts.hasRuns ? runSource(call, parts) : await instanceSource(call, parts, position);
  const release = parts.slots.take(call.principal.id, {
    perCaller: call.settings.streamsPerToken,
    perProcess: call.settings.streams,
  });
  return new EventStreamAnswer({
    principal: call.principal,
    text: (signal) => write(source, position, call.clock.now().getTime(), signal),
    ended: release,
  });
}

function runSource(call: FollowCall, { tail }: FollowParts): Source {
  const { target, query } = call;
  refuseInstances(query);
  const position = readId(call, RunPosition.read) ?? new RunPosition();
  const isWanted = isChosen(query);
  return async function* source(signal) {
    const ids = new LineIds();
    const counted = { tail, isWanted: query.text === undefined ? undefined : isWanted };
    for await (const line of runLines({ db: call.db, target }, position, { ...counted, signal })) {
      if (line === null) {
        yield { missing: null };
        continue;
      }
      const id = position.toString();
      yield { at: line.at, id, event: isWanted(line.at, line.text) ? () => eventOf(toRunLog(line, ids), id) : null };
    }
  };
}

async function instanceSource(
  call: FollowCall,
  { needs, streams, tail }: FollowParts,
  position: { text?: string | undefined },
): Promise<Source> {
  const { target, query } = call;
  const found = readId(call, LogPosition.read);
  const sent = found ?? new LogPosition();
  // Before the answer, as long as another machine can still be asked instead of this one.
  const runtime = await runtimeOfLog(needs, target);
  if (query.since !== undefined) sent.readFrom(query.since);
  if (query.pod_name !== undefined && !sent.has(query.pod_name)) sent.join();
  const isFound = hasText(query);
  position.text = sent.toString();
  const followed = { db: call.db, target };
  return async function* source(signal) {
    const ids = new LineIds();
    let going = sent;
    const take = function* (line: LogLine): Generator<Sending> {
      const place = going.take(line);
      if (place === 'sent') return;
      if (place === 'gap') yield { missing: null };
      const id = going.toString()!;
      yield { at: line.at, id, event: isFound(line.text) ? () => eventOf(toServiceLog(line, ids), id) : null };
    };
    // A runtime counts all lines: those with the text are counted here, and the log goes on behind them.
    if (!found && query.text !== undefined) {
      const stored = await readStoredLines(followed, runtime, query, signal);
      for (const line of lastWanted(stored, ({ text }) => isFound(text), tail)) yield* take(line);
      going = LogPosition.read(going.toString() ?? '') ?? going;
    }
    const since = laterOf(query.since, going.since);
    const isBehind = going.since !== undefined;
    const lines = instanceLines(
      followed,
      { runtime, streams },
      { ...query, ...(since === undefined ? {} : { since }) },
      { tail: isBehind ? SEARCHED : tailOf(query, tail), signal },
    );
    for await (const line of lines) yield* take(line);
  };
}

/** Returns the later of two times, ISO 8601; undefined is the earliest. */
const laterOf = (one: string | undefined, other: string | undefined): string | undefined =>
  one === undefined || (other !== undefined && Date.parse(other) > Date.parse(one)) ? other : one;

const eventOf = (view: object, id: string): string => block(undefined, serialize(ServiceLog, view), id);

/** Reads the position to go on from, of the header or else the query; 400 for one that is not of such a stream. */
function readId<T>({ headers, query }: FollowCall, read: (text: string) => T | undefined): T | undefined {
  const header = headers['last-event-id'];
  const isHeader = header !== undefined && header !== '';
  const text = isHeader ? String(header) : query.lastEventId;
  if (text === undefined || text === '') return undefined;
  const position = read(text);
  if (position === undefined)
    throw invalidField(isHeader ? 'Last-Event-ID' : 'lastEventId', 'must be the `id` of an event of this log');
  return position;
}

/** Yields the text of a stream. The log is read beside it, no further ahead than the backlog goes. */
async function* write(
  source: Source,
  position: { text?: string | undefined },
  openedAt: number,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const left = new AbortController();
  const ended = anySignal([signal, left.signal]);
  const backlog = new Backlog(ended);
  yield OPENING;
  void fill(source(ended), backlog, position, openedAt).then(
    () =>
      backlog.end({
        error: badGateway('The cluster has ended the log: connect again, with the last id as Last-Event-ID.'),
      }),
    (error: unknown) => backlog.end({ error }),
  );
  try {
    for (;;) {
      const part = await backlog.take(HEARTBEAT_MS);
      if (part === undefined) return;
      if (part.skipped > 0) yield skipped(part.skipped);
      yield part.text === '' ? heartbeat(position.text) : part.text;
    }
  } finally {
    left.abort();
  }
}

/** Adds the lines of a log to a backlog. Those from before the opening, and places where lines are missing, are kept for a slow client. */
async function fill(
  lines: AsyncIterable<Sending>,
  backlog: Backlog,
  position: { text?: string | undefined },
  openedAt: number,
): Promise<void> {
  for await (const line of lines) {
    if ('missing' in line) {
      await backlog.room(true);
      backlog.add(skipped(null), true);
      continue;
    }
    if (line.event) {
      const isStored = Date.parse(line.at) < openedAt;
      await backlog.room(isStored);
      backlog.add(line.event(), isStored);
    }
    position.text = line.id;
  }
}

const skipped = (count: number | null): string =>
  block(
    'skipped',
    serialize(SkippedEvent, {
      count,
      message:
        count === null
          ? 'Lines between the last one that you read and the next one may be missing: the cluster no longer has them, or they are too many.'
          : `${count} lines were skipped, since you read slower than they were written: narrow the log by text or pod_name, or read it without follow.`,
    }),
  );
