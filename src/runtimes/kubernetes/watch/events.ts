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

/** Bytes of one event: an object has at most 1.5 MiB. */
const MOST_BYTES = 2 * 2 ** 20;
const NEWLINE = 10;
const TYPES = new Set(['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK']);

/**
 * Yields the events of a watch until the server ends it. Throws ApiError for an event that is an error, such as 410 where the server no
 * longer knows the version, and BadEvent for what is no event or too large. `heard` is called for all that comes.
 */
export async function* readEvents(stream: Readable, heard: () => void): AsyncGenerator<WatchEvent> {
  let rest: Buffer[] = [];
  let bytes = 0;
  for await (const part of stream as AsyncIterable<Buffer>) {
    heard();
    let from = 0;
    for (let end = part.indexOf(NEWLINE); end >= 0; end = part.indexOf(NEWLINE, from)) {
      requireSmall(bytes + end - from);
      yield toEvent(Buffer.concat([...rest, part.subarray(from, end)]).toString());
      [rest, bytes, from] = [[], 0, end + 1];
    }
    bytes += part.length - from;
    requireSmall(bytes);
    if (from < part.length) rest.push(part.subarray(from));
  }
}

function requireSmall(bytes: number): void {
  if (bytes > MOST_BYTES) throw new BadEvent(`an event of its watch is larger than ${MOST_BYTES / 2 ** 20} MiB`);
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
