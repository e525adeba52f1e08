import type { Database } from '#platform/database/index.ts';
import type { Lease, Renewal, RowClaim, WorkKind, WorkReport } from '#platform/work/index.ts';

/** Claim on an item whose attempts are counted. */
interface ItemClaim extends RowClaim {
  attempts: number;
}

/** Figures of a leased table, and the statements on its claims. */
export interface ItemTable {
  report: WorkReport;
  renew(db: Database, tokens: string[], leaseSeconds: number): Promise<Renewal[]>;
  giveBack(db: Database, claim: RowClaim, stoppedBy: 'order' | 'failure', leaseSeconds: number): Promise<unknown>;
}

interface ItemWorkOptions<C extends ItemClaim> extends Pick<WorkKind<C>, 'slots' | 'claim' | 'run'> {
  table: ItemTable;
  /** PostgreSQL channel whose messages tell of new items. */
  channel: string;
  /** Attempts after which an item is given up. */
  mostAttempts: number;
  giveUp(claim: C, lease: Lease): Promise<void>;
  /** Name of the field of the log that has the id of an item. */
  item: string;
}

const LEASE_SECONDS = 15;

/** Makes a kind of work on items that git providers' calls make: it begins within two seconds, and is taken over after 15. */
export const itemWork = <C extends ItemClaim>({
  table: { report, renew, giveBack },
  mostAttempts,
  giveUp,
  item,
  ...rest
}: ItemWorkOptions<C>): WorkKind<C> => ({
  ...rest,
  name: report.name,
  leaseSeconds: LEASE_SECONDS,
  pollMs: 2_000,
  renew,
  giveBack: (db, claim, stoppedBy) => giveBack(db, claim, stoppedBy, LEASE_SECONDS),
  attempts: { most: mostAttempts, of: ({ attempts }) => attempts, giveUp },
  fields: ({ organization_id, id }) => ({ organizationId: organization_id, [item]: id }),
});
