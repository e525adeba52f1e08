import { sql, type Database, type DB } from '#platform/database/index.ts';
import {
  assignments,
  FREE,
  inSeconds,
  IS_HELD,
  isOfClaim,
  readFigures,
  writeClaimed,
  type Columns,
  type Condition,
} from '#platform/work/claimed-rows.ts';
import type { OwnRowClaim, Renewal, RowClaim, WorkStatus } from '#platform/work/kind.ts';
import { requireHeld } from '#platform/work/lease.ts';

export interface LeasedTableOptions<Table extends keyof DB> {
  /** Table with the columns id, organization_id (unless its rows belong to no organization), claim_token, lease_until, created_at and ended_at. */
  table: Table;
  /** Column of the state; `status` unless it is said. */
  state?: keyof DB[Table] & string;
  /** State of items that no worker has begun. */
  waiting: string;
  /** State of items that a worker has begun, and that stay in it when the worker is gone. */
  running: string;
  /** State of items whose worker only writes their end; none unless it is said. */
  ending?: string;
  /** Column that counts the attempts; `attempts` unless it is said. */
  attempts?: keyof DB[Table] & string;
  /** Expression for the reason to end an item of the table `w`; by default none. */
  reason?: Condition;
  /** Items that are of this kind of work; all unless it is said. */
  only?: Condition;
  /** Ended items that failed. */
  failed: Condition;
  /** Items that count as begun more than once, beside those with more than one attempt. */
  retried?: Condition;
  /** Columns that items which are given back lose, beside the claim. */
  givenBack?: Columns<Table>;
}

/** Seconds after which an item that failed without an end may be claimed again; doubled by each attempt, at most a lease. */
const RETRY_SECONDS = 1;

export interface RenewalOptions {
  /** Expression for the reason to end an item of the table `w`; by default none. */
  reason?: Condition;
  /** Columns of the primary key, the claim's token and the end of the lease; `id`, `claim_token` and `lease_until` unless it is said. */
  columns?: { id?: string; token?: string; lease?: string };
}

/**
 * Makes the statement that renews leases on a table. It returns the claims that are still held, those of locked rows without having renewed
 * them.
 */
export function renewalOf<Reason extends string = never>(name: keyof DB & string, options: RenewalOptions = {}) {
  const { reason = sql`null::text`, columns = {} } = options;
  const table = sql.table(name);
  const id = sql.ref(columns.id ?? 'id');
  const token = sql.ref(columns.token ?? 'claim_token');
  const lease = sql.ref(columns.lease ?? 'lease_until');
  return async (db: Database, tokens: string[], leaseSeconds: number): Promise<Renewal<Reason>[]> => {
    // Ended items have no token.
    const isHeld = sql`w.${token} = any(${tokens}::uuid[])`;
    const { rows } = await sql<Renewal<Reason>>`
      with held as (
        select w.${id} as id, w.${token} as token, ${reason} as reason from ${table} w where ${isHeld}
      ), free as (
        select w.${id} as id from ${table} w where ${isHeld} for update skip locked
      ), renewed as (
        update ${table} w set ${lease} = ${inSeconds(leaseSeconds)} from free where w.${id} = free.id returning free.id
      )
      select token, reason, id in (select id from renewed) as renewed from held`.execute(db);
    return rows;
  };
}

/**
 * Makes the statements on the common columns of durable work for one table. Claims differ in what they ask of other tables: a kind writes its own,
 * with `isLeft` and `claiming`.
 */
export function leasedTable<Table extends keyof DB & string, Reason extends string = never>(
  options: LeasedTableOptions<Table>,
) {
  const { waiting, running, ending, failed, givenBack = {} } = options;
  const open = [waiting, running, ...(ending === undefined ? [] : [ending])];
  const table = sql.table(options.table);
  const state = sql.ref(options.state ?? 'status');
  const attempts = sql.ref(options.attempts ?? 'attempts');
  const only = options.only ?? sql`true`;

  /** Writes columns of an item while the claim holds. Throws ClaimLost. */
  const write = async (db: Database, claim: RowClaim | OwnRowClaim, columns: Columns<Table>): Promise<void> =>
    requireHeld(await writeClaimed(db, options.table, claim, columns));

  return {
    /** Condition on the row `w` that a worker has begun it and does not renew its lease any more. */
    isLeft: sql<boolean>`(w.${state} = ${sql.lit(running)} and (w.lease_until is null or w.lease_until < clock_timestamp()))`,

    /** Assignments by which a claim begins an item or takes it over; `returning …, claim_token as token` completes the claim. */
    claiming: (leaseSeconds: number) => sql`${state} = ${sql.lit(running)}, ${attempts} = ${attempts} + 1,
      claim_token = gen_random_uuid(), started_at = coalesce(started_at, clock_timestamp()), lease_until = ${inSeconds(leaseSeconds)}`,

    write,

    /** Writes the end of an item and frees it. Throws ClaimLost. */
    end: (db: Database, claim: RowClaim | OwnRowClaim, columns: Columns<Table>): Promise<void> =>
      write(db, claim, { ...columns, ...FREE, ended_at: sql`clock_timestamp()` } as Columns<Table>),

    /**
     * Frees an item that did not arrive, for another try after `waitMs`. Its table has the columns tries, error and due_at as well. Throws
     * ClaimLost.
     */
    putOff: (db: Database, claim: RowClaim | OwnRowClaim, error: string, waitMs: number): Promise<void> =>
      write(db, claim, {
        [options.state ?? 'status']: waiting,
        error,
        tries: sql`tries + 1`,
        ...FREE,
        due_at: inSeconds(waitMs / 1000),
      } as unknown as Columns<Table>),

    renew: renewalOf<Reason>(options.table, { reason: options.reason }),

    /**
     * Lets go of an item. Stopped in order, it can be claimed at once and the attempt does not count; after a failure it rests for a while that
     * grows with its attempts, so that what fails at once is not given up within milliseconds.
     */
    giveBack: (db: Database, claim: RowClaim | OwnRowClaim, stoppedBy: 'order' | 'failure', leaseSeconds: number) =>
      stoppedBy === 'order'
        ? sql`update ${table} set ${assignments({ ...givenBack, ...FREE })}, ${attempts} = ${attempts} - 1
            where ${isOfClaim(claim)}`.execute(db)
        : sql`update ${table} set claim_token = null,
            lease_until = ${inSeconds(sql`least(${leaseSeconds}::float8, ${RETRY_SECONDS}::float8 * 2 ^ least(${attempts}, 20))`)}
            where ${isOfClaim(claim)}`.execute(db),

    /** Figures for operators. */
    status: (db: Database): Promise<WorkStatus> =>
      readFigures(db, {
        table: options.table,
        of: sql`${state} in (${sql.join(open.map((one) => sql.lit(one)))}) and ${only}`,
        waiting: sql`not ${IS_HELD}`,
        since: sql.ref('created_at'),
        retried: sql`(${attempts} > 1 or ${options.retried ?? sql`false`})`,
        failure: { is: sql`${failed} and ${only}`, at: sql.ref('ended_at'), text: sql.ref('error') },
      }),
  };
}
