import { setMaxListeners } from 'node:events';
import type { Platform } from '#platform/context.ts';
import {
  readStreamCursor,
  type EventStreams,
  type Missing,
  type StreamFilter,
  type StreamItem,
  type StreamRow,
} from '#platform/events/stream.ts';
import type { Feed, Member } from '#delivery/stream/feed.ts';
import { compare, positionOf, writeCursor, type Position } from '#delivery/stream/position.ts';
import { readPage, type Page } from '#delivery/stream/queries.ts';

/** Events that a stream that catches up reads at once. */
const PAGE = 250;
/** Streams of one process that read the table at the same time: all reconnect at once after a restart. */
const READERS = 4;

/** Streams that are fed by one reader, and read the table themselves while they are behind it. */
export class Streams implements EventStreams {
  readonly #platform: Platform;
  readonly #feed: Feed;
  readonly #pauseMs: number;
  #reading = 0;
  readonly #waiting: (() => void)[] = [];

  /** `pauseMs`: after so long without an event an item says how far the stream has come. */
  constructor(platform: Platform, feed: Feed, pauseMs: number) {
    this.#platform = platform;
    this.#feed = feed;
    this.#pauseMs = pauseMs;
  }

  async *open(
    filter: StreamFilter,
    cursor: string | undefined,
    wants: (row: StreamRow) => boolean,
    signal: AbortSignal,
  ): AsyncGenerator<StreamItem[]> {
    setMaxListeners(0, signal);
    const given = cursor === undefined ? undefined : readStreamCursor(cursor);
    let { line, at } = given ? { line: given.line, at: given } : await this.#begin(filter);
    let told = given ? undefined : writeCursor(line, at);
    if (told) yield [{ cursor: told }];
    while (!signal.aborted) {
      const page = await this.#read(filter, at, PAGE);
      const missing = missingIn(page, line, at);
      if (missing) {
        [line, at] = [page.line, page.horizon];
        yield [{ cursor: writeCursor(line, at), missing }];
        continue;
      }
      const items = itemsOf(line, page.rows.filter(wants));
      at = page.position;
      const member = page.full ? undefined : this.#join(filter, line, at, wants);
      try {
        const cursor = writeCursor(line, at);
        if (cursor !== told) yield items.at(-1)?.cursor === cursor ? items : [...items, { cursor }];
        told = cursor;
        if (member) at = yield* this.#follow(member, line, signal);
      } finally {
        member?.leave();
      }
    }
  }

  /** Finds the position of a stream that begins now. */
  async #begin(filter: StreamFilter): Promise<{ line: string; at: Position }> {
    const page = await this.#read(filter, { xid: 0n, id: 0 }, 0);
    return { line: page.line, at: page.horizon };
  }

  #join({ organizationId, ...filter }: StreamFilter, line: string, at: Position, wants: (row: StreamRow) => boolean) {
    const types = new Set(filter.types);
    const chosen = (row: StreamRow): boolean =>
      types.has(row.type) &&
      (filter.projectId === undefined || row.project_id === filter.projectId) &&
      (filter.environmentId === undefined || row.environment_id === filter.environmentId) &&
      (filter.serviceId === undefined || row.service_id === filter.serviceId || row.type === 'log') &&
      (filter.deploymentId === undefined || row.deployment_id === filter.deploymentId);
    return this.#feed.join(organizationId, line, at, (row) => chosen(row) && wants(row));
  }

  /** Yields the items that the feed hands to a member, until it falls behind. Returns the position that it reached. */
  async *#follow(member: Member, line: string, signal: AbortSignal): AsyncGenerator<StreamItem[], Position> {
    const wake = () => member.wake();
    signal.addEventListener('abort', wake);
    try {
      while (!signal.aborted) {
        const rows = await member.next(this.#pauseMs);
        if (!rows) break;
        yield rows.length > 0 ? itemsOf(line, rows) : [{ cursor: writeCursor(line, member.position()) }];
      }
      return member.position();
    } finally {
      signal.removeEventListener('abort', wake);
    }
  }

  async #read({ organizationId, ...filter }: StreamFilter, at: Position, limit: number): Promise<Page> {
    if (this.#reading >= READERS) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#reading++;
    try {
      return await readPage(this.#platform.db, { ...filter, organizationIds: [organizationId] }, at, limit);
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#reading--;
    }
  }
}

function missingIn(page: Page, line: string, at: Position): Missing | undefined {
  if (page.line !== line || compare(at, page.horizon) > 0) return 'RESTORED';
  return compare(page.removed, at) > 0 ? 'REMOVED' : undefined;
}

const itemsOf = (line: string, rows: StreamRow[]): StreamItem[] =>
  rows.map((row) => ({ cursor: writeCursor(line, positionOf(row)), row }));
