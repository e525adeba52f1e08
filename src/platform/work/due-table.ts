import { sql, type Database, type DB } from '#platform/database/index.ts';
import {
  FREE,
  inSeconds,
  IS_HELD,
  isOfClaim,
  readFigures,
  writeClaimed,
  type Columns,
  type Condition,
} from '#platform/work/claimed-rows.ts';
import type { ClaimRequest, RowClaim, WorkStatus } from '#platform/work/kind.ts';
import { renewalOf } from '#platform/work/leased-table.ts';
import { idsInTurn } from '#platform/work/turns.ts';

export interface DueTableOptions<Table extends keyof DB & string> {
  /** Table with the columns id, organization_id, claim_token, lease_until and next_at. */
  table: Table;
  /** Columns of a claim, beside those of every claim. */
  columns: (keyof DB[Table] & string)[];
  /** Seconds until a row is due again whose worker failed. */
  retrySeconds: number;
  /** Rows of an organization that run at a time in all processes; no limit unless it is said. Rows that failed before have a share of their own. */
  share?: { failing: number; others: number };
  /** Columns that such a failure changes, beside the claim. */
  failing?: Columns<Table>;
  /** Last failure of a row, for operators: the condition that it failed, when, and why. */
  failure: { is: Condition; at: Condition; text: Condition };
}

/** Makes the statements on a table whose rows are worked on again and again: each is due at `next_at`, and one process works on it. */
export function dueTable<Claim extends RowClaim, Table extends keyof DB & string>(options: DueTableOptions<Table>) {
  const table = sql.table(options.table);
  const columns = sql.join(options.columns.map((name) => sql.ref(name)));
  const write = (db: Database, claim: RowClaim, changes: object): Promise<boolean> =>
    writeClaimed(db, options.table, claim, { ...changes, ...FREE });

  /** Locks rows to claim, and returns their ids. */
  const idsOf = (isDue: Condition, limit: number) =>
    options.share
      ? idsInTurn(options.table, {
          isDue,
          order: 'next_at',
          limit,
          share: options.share.others,
          failing: { is: options.failure.is, share: options.share.failing },
        })
      : sql`select id from ${table} where ${isDue} order by next_at limit ${limit} for update skip locked`;

  return {
    /** Claims rows that are due and have no unexpired claim, the longest due first; with a share, organizations take turns. `only`: those that are claimed; all unless it is said. */
    async claim(db: Database, { limit, leaseSeconds }: ClaimRequest, only: Condition = sql`true`): Promise<Claim[]> {
      const isDue = sql`next_at <= clock_timestamp() and (lease_until is null or lease_until < clock_timestamp()) and ${only}`;
      const { rows } = await sql<Claim>`
        update ${table} set claim_token = gen_random_uuid(), lease_until = ${inSeconds(leaseSeconds)}
        where id in (${idsOf(isDue, limit)})
        returning id, organization_id, ${columns}, claim_token as token`.execute(db);
      return rows;
    },

    renew: renewalOf(options.table),

    /** Tells whether the claim still holds, and locks its row until the commit. */
    async hold(db: Database, claim: RowClaim): Promise<boolean> {
      const { rows } = await sql`select id from ${table} where ${isOfClaim(claim)} for update`.execute(db);
      return rows.length > 0;
    },

    /** Writes the end of a look, with the time of the next one in `next_at`, and frees the row. False if the claim is lost. */
    end: (db: Database, claim: RowClaim, changes: Columns<Table>): Promise<boolean> => write(db, claim, changes),

    /** Frees a row. It stays due if the attempt was stopped in order, else it is due after a while. */
    giveBack: (db: Database, claim: RowClaim, stoppedBy: 'order' | 'failure'): Promise<boolean> =>
      write(db, claim, stoppedBy === 'order' ? {} : { ...options.failing, next_at: inSeconds(options.retrySeconds) }),

    /** Figures for operators; rows that are due count as waiting. */
    status: (db: Database): Promise<WorkStatus> =>
      readFigures(db, {
        table: options.table,
        of: sql`true`,
        waiting: sql`(not ${IS_HELD} and next_at <= clock_timestamp())`,
        since: sql.ref('next_at'),
        retried: options.failure.is,
        failure: options.failure,
      }),
  };
}
