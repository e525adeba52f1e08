import type { Platform } from '#platform/context.ts';
import type { StreamRow } from '#platform/events/stream.ts';
import { compare, positionOf, type Position } from '#delivery/stream/position.ts';
import { readPage } from '#delivery/stream/queries.ts';

/** Events that a member may have waiting; with more it falls back to reading the table, at its own pace. */
const MAX_QUEUED = 256;
const PAGE = 500;
/** Milliseconds between two reads, so that events written in quick succession are read together. */
const GAP_MS = 20;
/** Milliseconds until events that wait for an open transaction are looked at again, on top of GAP_MS. */
const PENDING_MS = 10;
/** Milliseconds between looks without a wake-up: some changes are not notified. */
const POLL_MS = 250;

/** Subscriber of the feed. */
export interface Member {
  /** Events that came since the last call, waiting for some at most so long; undefined when this member is to read the table again. */
  next(milliseconds: number): Promise<StreamRow[] | undefined>;
  /** Returns the position up to which this member has everything, once it has taken the answer of `next`. */
  position(): Position;
  /** Ends a wait of `next`. */
  wake(): void;
  leave(): void;
}

/**
 * Reads new events once for a whole process and hands them to its members. A member joins when it has read the table up to where the feed is;
 * from then on it is handed the later events. The feed does not wait for a member, which reads the table itself if its queue is full.
 */
export class Feed {
  readonly #platform: Platform;
  readonly #members = new Map<string, Set<QueueMember>>();
  /** Position up to which events were handed out; undefined while there are no members. */
  #position: Position | undefined;
  #line = '';
  #running: Promise<void> | undefined;
  #closed = false;
  #nudged = false;
  #wake: (() => void) | undefined;

  constructor(platform: Platform) {
    this.#platform = platform;
  }

  /**
   * Joins with everything read up to a place. Undefined when the feed is further already: read the table on and try again.
   */
  join(organizationId: string, line: string, at: Position, wants: (row: StreamRow) => boolean): Member | undefined {
    if (this.#closed || (this.#position && (line !== this.#line || compare(this.#position, at) > 0))) return undefined;
    if (!this.#position) {
      this.#position = at;
      this.#line = line;
    }
    const feed = (): Position => this.#position ?? at;
    const members = this.#members.get(organizationId) ?? new Set();
    const member = new QueueMember(at, feed, wants, () => {
      members.delete(member);
      if (members.size === 0 && this.#members.get(organizationId) === members) this.#members.delete(organizationId);
    });
    this.#members.set(organizationId, members.add(member));
    this.#running ??= this.#run();
    this.nudge();
    return member;
  }

  /** Tells the feed that there may be new events. */
  nudge(): void {
    this.#nudged = true;
    this.#wake?.();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.nudge();
    await this.#running;
    this.#dismissAll();
  }

  async #run(): Promise<void> {
    while (!this.#closed) {
      this.#nudged = false;
      if (this.#members.size === 0) {
        this.#position = undefined;
        await this.#pause(undefined);
        continue;
      }
      let wait = POLL_MS;
      try {
        wait = await this.#read(this.#position!);
      } catch (error) {
        this.#platform.log.warn({ err: error }, 'events for streams could not be read; trying again');
        this.#nudged = false; // A database that is away isn't asked in a busy loop.
      }
      if (wait > 0) await this.#pause(wait);
      await new Promise((resolve) => setTimeout(resolve, GAP_MS));
    }
  }

  /** Reads and hands out what is new; answers how long to wait at most before the next look. */
  async #read(from: Position): Promise<number> {
    const organizationIds = [...this.#members.keys()];
    const page = await readPage(this.#platform.db, { organizationIds }, from, PAGE);
    if (page.line !== this.#line || compare(page.removed, from) > 0) {
      // The members find out themselves what that means for them.
      this.#dismissAll();
      return 0;
    }
    const asked = new Set(organizationIds);
    this.#position = page.position;
    for (const row of page.rows) {
      const place = positionOf(row);
      for (const member of this.#members.get(row.organization_id) ?? []) member.push(row, place);
    }
    // Who joined meanwhile for an organization that wasn't asked for has missed what this read would have told.
    for (const [organizationId, members] of this.#members)
      if (!asked.has(organizationId)) for (const member of members) member.dismiss();
    return page.full ? 0 : page.pending ? PENDING_MS : POLL_MS;
  }

  #dismissAll(): void {
    for (const members of this.#members.values()) for (const member of members) member.dismiss();
    this.#members.clear();
  }

  async #pause(milliseconds: number | undefined): Promise<void> {
    if (this.#nudged || this.#closed) return;
    await new Promise<void>((resolve) => {
      const timer = milliseconds === undefined ? undefined : setTimeout(resolve, milliseconds);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = undefined;
  }
}

class QueueMember implements Member {
  readonly #feed: () => Position;
  readonly #wants: (row: StreamRow) => boolean;
  readonly #onLeave: () => void;
  #taken: Position;
  /** Position of the last row in the queue. */
  #last: Position;
  #queue: StreamRow[] = [];
  #dismissed = false;
  #wake: (() => void) | undefined;

  constructor(at: Position, feed: () => Position, wants: (row: StreamRow) => boolean, onLeave: () => void) {
    this.#taken = at;
    this.#last = at;
    this.#feed = feed;
    this.#wants = wants;
    this.#onLeave = onLeave;
  }

  push(row: StreamRow, place: Position): void {
    if (this.#dismissed || compare(place, this.#taken) <= 0 || !this.#wants(row)) return;
    if (this.#queue.length === MAX_QUEUED) return this.dismiss();
    this.#queue.push(row);
    this.#last = place;
    this.wake();
  }

  /** Stops handing events to the member: it takes the queued ones and then reads the table. */
  dismiss(): void {
    this.#dismissed = true;
    this.#onLeave();
    this.wake();
  }

  async next(milliseconds: number): Promise<StreamRow[] | undefined> {
    if (this.#queue.length === 0 && !this.#dismissed) await this.#wait(milliseconds);
    const rows = this.#queue;
    this.#queue = [];
    if (rows.length > 0) this.#taken = this.#last;
    else if (this.#dismissed) return undefined;
    // Everything up to where the feed is was either queued, and is taken now, or not wanted.
    if (!this.#dismissed && compare(this.#feed(), this.#taken) > 0) this.#taken = this.#feed();
    return rows;
  }

  position(): Position {
    return this.#taken;
  }

  wake(): void {
    this.#wake?.();
  }

  leave(): void {
    this.#dismissed = true;
    this.#onLeave();
  }

  async #wait(milliseconds: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = undefined;
  }
}
