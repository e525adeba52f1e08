import type { Readable } from 'node:stream';
import { ApiError } from '../errors.ts';
import type { ClusterObject } from '../kinds.ts';

/** Event of a watch. A bookmark only tells how far the watch has come. */
export interface WatchEvent {
  type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  object: ClusterObject;
}

/** Failure of a watch whose server sends something else than events. */
export class BadEvent extends Error {}

/** Bytes of one event that is read: an object has seldom a tenth of it. */
const MOST_BYTES = 2 * 2 ** 20;
/** Bytes of an event that is passed over: an object has 1.5 MiB, and six times as many where its text is escaped. */
const MOST_PASSED_BYTES = 16 * 2 ** 20;
const NEWLINE = 10;
const TYPES = new Set(['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK']);

/**
 * Yields the events of a watch until the server ends it. Throws ApiError for an event that is an error, such as 410 where the server no
 * longer knows the version, and BadEvent for what is no event. Passes over events of objects that are too large: they must not hide what
 * happens to others. `heard` is called for all that comes.
 */
export async function* readEvents(stream: Readable, heard: () => void): AsyncGenerator<WatchEvent> {
  let rest: Buffer[] = [];
  let bytes = 0;
  for await (const part of stream as AsyncIterable<Buffer>) {
    heard();
    let from = 0;
    for (let end = part.indexOf(NEWLINE); end >= 0; end = part.indexOf(NEWLINE, from)) {
      if (bytes + end - from <= MOST_BYTES)
        yield toEvent(Buffer.concat([...rest, part.subarray(from, end)]).toString());
      [rest, bytes, from] = [[], 0, end + 1];
    }
    bytes += part.length - from;
    if (bytes > MOST_PASSED_BYTES) throw new BadEvent(`an event is larger than ${MOST_PASSED_BYTES / 2 ** 20} MiB`);
    if (bytes > MOST_BYTES) rest = [];
    else if (from < part.length) rest.push(part.subarray(from));
  }
}

function toEvent(line: string): WatchEvent {
  const event = parse(line) as { type?: unknown; object?: ClusterObject & Record<string, unknown> } | null;
  if (event?.type === 'ERROR') throw refusalOf(event.object ?? {});
  const { metadata } = event?.object ?? {};
  if (!TYPES.has(String(event?.type)) || typeof metadata?.resourceVersion !== 'string') throw new BadEvent(NO_EVENT);
  return event as WatchEvent;
}

const NO_EVENT = 'its watch sent what is no event';

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch (cause) {
    throw new BadEvent(NO_EVENT, { cause });
  }
}

const refusalOf = ({ code, reason, message }: Record<string, unknown>): ApiError =>
  new ApiError(Number(code) || 500, String(reason ?? ''), String(message ?? 'its watch has failed').slice(0, 1000));
