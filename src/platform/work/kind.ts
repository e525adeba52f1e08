import type { Database } from '#platform/database/index.ts';
import type { Lease } from '#platform/work/lease.ts';

/** Work that this process may carry on until its lease ends. Writes that name the token are refused once the claim is another's. */
export interface Claim {
  token: string;
}

/** Claim on a row of a table with the columns of leased work (leased-table.ts). */
export interface RowClaim extends Claim {
  id: string;
  organization_id: string;
}

/** Claim on such a row that belongs to the installation, not to an organization. */
export interface OwnRowClaim extends Claim {
  id: string;
  organization_id?: undefined;
}

/** Claim that the worker still holds, as its renewal found it. */
export interface Renewal<Reason extends string = never> {
  token: string;
  /** Reason to end the work; null where it goes on. */
  reason: Reason | null;
  /** True if the lease is longer now: false if another transaction has locked the row. */
  renewed: boolean;
}

export interface ClaimRequest {
  /** Limit of claims to return. */
  limit: number;
  /** Machine of this process: work on what lives on a machine is left to that machine. */
  nodeId: string;
  /** Seconds that a claim holds without being renewed. */
  leaseSeconds: number;
}

/** Figures of one kind of work over all processes, for operators. */
export interface WorkStatus {
  /** Items that could begin, or whose worker is gone. */
  waiting: number;
  /** Items that a worker holds a lease on. */
  running: number;
  oldestWaiting: Date | null;
  /** Open items that were begun more than once. */
  retried: number;
  lastFailure: { at: Date; error: string | null } | null;
}

/** Figures of a kind of work, which any process can ask the database for. */
export interface WorkReport {
  /** Name of the kind of items, in lower case with hyphens. */
  name: string;
  status(db: Database): Promise<WorkStatus>;
}

/** Kind of durable work: where its items stand in the database, and how one is carried out. `WorkLoop` does the rest. */
export interface WorkKind<C extends Claim, Reason extends string = never> {
  /** Name for the log, in lower case with hyphens. */
  name: string;
  /** Seconds that a claim holds without being renewed: so long after a `kill -9` another process takes the item over. */
  leaseSeconds: number;
  /** Items that one process works on at a time. Items that rest (`Lease.rest`) do not count. */
  slots: number;
  /** Milliseconds between two looks while few processes share the work. */
  pollMs: number;
  /** PostgreSQL channel whose messages tell of new items. */
  channel?: string;
  /** Claims items, the next first. Fewer than the limit mean that there are no more now. */
  claim(db: Database, request: ClaimRequest): Promise<C[]>;
  /** Renews the leases of claims and returns those that are still held. A locked row must hold up no other one. */
  renew(db: Database, tokens: string[], leaseSeconds: number): Promise<Renewal<Reason>[]>;
  /** Lets go of an item that was not brought to its end. Stopped by `order`, the attempt does not count. */
  giveBack(db: Database, claim: C, stoppedBy: 'order' | 'failure'): Promise<unknown>;
  /** Carries an item to its end and records that end. Throws where the attempt ends without one. */
  run(claim: C, lease: Lease<Reason>): Promise<void>;
  /** Limit of attempts; beyond it `giveUp` records a failure instead of another run. */
  attempts?: { most: number; of(claim: C): number; giveUp(claim: C, lease: Lease<Reason>): Promise<void> };
  /** Prepares each look for claims, such as by making items of due work. A failure is logged and keeps no item from being claimed. */
  prepare?(signal: AbortSignal): Promise<unknown>;
  /** Names what two attempts must not work on at the same time within one process: the later one waits for the earlier to return. */
  subject?(claim: C): string;
  /** Fields of the log that tell which item a line is about. */
  fields?(claim: C): Record<string, string>;
  /** Replaces the renewal while the process holds no claim. */
  heartbeat?(): Promise<unknown>;
  /** Called when every lease of the process was lost at once, as after it was frozen. */
  onCutOff?(): void;
}
