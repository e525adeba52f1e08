import { setTimeout as sleep } from 'node:timers/promises';
import { endsWithin } from '#kernel/deadline.ts';
import type { Platform } from '#platform/context.ts';
import { isDatabaseAway } from '#platform/database/index.ts';
import type { Claim, WorkKind } from '#platform/work/kind.ts';
import { ClaimLost, type Lease } from '#platform/work/lease.ts';
import { LeasedWork } from '#platform/work/leased-work.ts';
import { Poll } from '#platform/work/pace.ts';
import { Repeated } from '#platform/work/repeated.ts';

const RENEWALS_PER_LEASE = 5;
const WATCH_MS = 250;
/** Milliseconds from the end of an item to the next look: several that end together are followed by one look. */
const SOON_MS = 5;
/** The same while more than half of the slots are at work: a look costs the same for one item as for many. */
const SOON_WHILE_BUSY_MS = 25;
/** Items that one process holds at most, those that rest among them: each takes memory, and all leases are renewed by one statement. */
const MOST_HELD = 1_000;
/** Milliseconds that a stop waits for runs; supervisors give the whole process 30 s (src/kernel/shutdown.ts). */
const STOP_MS = 25_000;

export interface WorkLoopOptions {
  platform: Pick<Platform, 'db' | 'log'>;
  /** Machine of this process. */
  nodeId: string;
  /** Milliseconds that a stop waits for runs that ignore their signal. */
  stopMs?: number;
}

/**
 * Claims items of one kind of work and carries them out, several at a time. Any number of processes share the items: each is claimed with a
 * lease that is renewed apart from the looks, and taken over when its process is gone (docs/decisions/0070-one-mechanism-for-durable-work.md).
 */
export class WorkLoop<C extends Claim, Reason extends string = never> {
  readonly #kind: WorkKind<C, Reason>;
  readonly #platform: WorkLoopOptions['platform'];
  readonly #nodeId: string;
  readonly #stopMs: number;
  readonly #work: LeasedWork<Reason>;
  readonly #poll: Poll;
  readonly #looks: Repeated;
  readonly #renewals: Repeated;
  readonly #stopping = new AbortController();
  /** Runs of this process that have not returned, by subject. */
  readonly #subjects = new Map<string, Promise<void>>();
  #timers: NodeJS.Timeout[] = [];
  #soon: NodeJS.Timeout | undefined;

  constructor(kind: WorkKind<C, Reason>, { platform, nodeId, stopMs = STOP_MS }: WorkLoopOptions) {
    this.#kind = kind;
    this.#platform = platform;
    this.#nodeId = nodeId;
    this.#stopMs = stopMs;
    this.#work = new LeasedWork(kind.leaseSeconds, () => this.#nudgeSoon());
    this.#poll = new Poll(platform.db, kind.pollMs, () => this.nudge());
    const warn = (text: string) => (error: unknown) => platform.log.warn({ err: error, work: kind.name }, text);
    this.#looks = new Repeated(() => this.#look(), warn('cannot claim work; it is tried again'));
    this.#renewals = new Repeated(() => this.#renew(), warn('cannot renew the leases of work'));
  }

  get channel(): string | undefined {
    return this.#kind.channel;
  }

  start(): void {
    const renewMs = (this.#kind.leaseSeconds * 1000) / RENEWALS_PER_LEASE;
    this.#timers = [setInterval(() => this.renew(), renewMs), setInterval(() => this.#watch(), WATCH_MS)];
    this.#poll.start();
    this.nudge();
  }

  /**
   * Claims nothing more and ends what runs, which is given back without counting as an attempt. Leases are renewed until the last run has
   * returned. Runs that have not returned in time are left behind: other processes take their items over when the leases end.
   */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#poll.stop();
    clearTimeout(this.#soon);
    const inTime = await endsWithin(this.#stopMs, this.#end());
    for (const timer of this.#timers) clearInterval(timer);
    if (!inTime)
      this.#platform.log.warn(
        { work: this.#kind.name, items: this.#work.size, ms: this.#stopMs },
        'work does not end: it is left behind, and taken over by others when its lease ends',
      );
  }

  /** Looks for items now. */
  nudge(): void {
    if (!this.#stopping.signal.aborted) void this.look();
  }

  /** Looks for items and resolves when those that could be claimed have begun. */
  look(): Promise<void> {
    return this.#looks.request();
  }

  /** Renews the leases now, and learns which items are to end. */
  renew(): void {
    void this.#renewals.request();
  }

  /** Ends all runs as lost: the process can no longer show that it holds them. */
  loseAll(): void {
    this.#work.abortAll('lost');
  }

  async #end(): Promise<void> {
    this.#work.abortAll('give-back');
    await Promise.all([this.#work.ended(), this.#looks.settled()]);
    for (const timer of this.#timers) clearInterval(timer);
    await this.#renewals.settled();
  }

  async #look(): Promise<void> {
    await this.#prepare();
    for (;;) {
      const limit = Math.min(this.#kind.slots - this.#work.busy, MOST_HELD - this.#work.size);
      if (this.#stopping.signal.aborted || limit <= 0) return;
      this.#work.refresh();
      const { leaseSeconds } = this.#kind;
      const claims = await this.#kind.claim(this.#platform.db, { limit, nodeId: this.#nodeId, leaseSeconds });
      // What was claimed while the process began to stop goes back unbegun.
      if (this.#stopping.signal.aborted) await Promise.all(claims.map((claim) => this.#giveBack(claim, 'order')));
      else for (const claim of claims) this.#begin(claim);
      if (claims.length < limit) return;
    }
  }

  async #prepare(): Promise<void> {
    const { signal } = this.#stopping;
    if (signal.aborted) return;
    try {
      await this.#kind.prepare?.(signal);
    } catch (error) {
      if (!signal.aborted)
        this.#platform.log.warn({ err: error, work: this.#kind.name }, 'cannot prepare work; it is tried again');
    }
  }

  async #renew(): Promise<void> {
    const { leaseSeconds } = this.#kind;
    if (this.#work.size === 0) await this.#kind.heartbeat?.();
    else await this.#work.renew((tokens) => this.#kind.renew(this.#platform.db, tokens, leaseSeconds));
  }

  #watch(): void {
    if (this.#work.watch()) this.#kind.onCutOff?.();
  }

  #begin(claim: C): void {
    void this.#work.begin(claim.token, (lease) => this.#runAlone(claim, lease)).finally(() => this.#nudgeSoon());
  }

  #nudgeSoon(): void {
    const isBusy = this.#work.busy > this.#kind.slots / 2;
    this.#soon ??= setTimeout(
      () => {
        this.#soon = undefined;
        this.nudge();
      },
      isBusy ? SOON_WHILE_BUSY_MS : SOON_MS,
    );
  }

  /** Runs a claim after an earlier run of its subject, which may have lost its claim and be ending. */
  async #runAlone(claim: C, lease: Lease<Reason>): Promise<void> {
    const subject = this.#kind.subject?.(claim);
    if (subject === undefined) return this.#run(claim, lease);
    const run = (this.#subjects.get(subject) ?? Promise.resolve()).then(() => this.#run(claim, lease));
    this.#subjects.set(subject, run);
    await run;
    if (this.#subjects.get(subject) === run) this.#subjects.delete(subject);
  }

  /** Never rejects. */
  async #run(claim: C, lease: Lease<Reason>): Promise<void> {
    const { attempts } = this.#kind;
    try {
      if (attempts && attempts.of(claim) > attempts.most) await attempts.giveUp(claim, lease);
      else await this.#kind.run(claim, lease);
    } catch (error) {
      await this.#leave(claim, lease, error);
    }
  }

  async #leave(claim: C, lease: Lease<Reason>, error: unknown): Promise<void> {
    const inOrder = lease.reason === 'give-back';
    if (!inOrder && !(error instanceof ClaimLost))
      this.#log(claim).warn({ err: error }, 'stopped working on an item; another attempt goes on with it');
    // Attempts are counted against items that end their process, not against a database that is away; that gets time to come back.
    const away = isAway(error);
    if (away && !this.#stopping.signal.aborted) await sleep(this.#kind.pollMs);
    await this.#giveBack(claim, inOrder || away ? 'order' : 'failure');
  }

  async #giveBack(claim: C, stoppedBy: 'order' | 'failure'): Promise<void> {
    try {
      await this.#kind.giveBack(this.#platform.db, claim, stoppedBy);
    } catch (error) {
      this.#log(claim).warn({ err: error }, 'cannot give an item back: others take it over when its lease ends');
    }
  }

  #log(claim: C) {
    return this.#platform.log.child({ work: this.#kind.name, ...this.#kind.fields?.(claim) });
  }
}

/** Returns whether the database could not be reached, also behind an error of the engine. */
function isAway(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) if (isDatabaseAway(at)) return true;
  return false;
}
