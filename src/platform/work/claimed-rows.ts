import type { RawBuilder, UpdateType } from 'kysely';
import { sql, type Database, type DB } from '#platform/database/index.ts';
import type { OwnRowClaim, RowClaim, WorkStatus } from '#platform/work/kind.ts';

/** SQL of a condition, or of another expression. */
export type Condition = RawBuilder<unknown>;

/** New values of columns, or expressions for them. */
export type Columns<Table extends keyof DB> = {
  [Name in keyof DB[Table]]?: UpdateType<DB[Table][Name]> | RawBuilder<unknown>;
};

/** Columns of a row without a claim. */
export const FREE = { claim_token: null, lease_until: null };

/** Returns figures with the time of the last failure as a date: the database's JSON has it as a text. */
export const withDate = ({ lastFailure, ...figures }: WorkStatus): WorkStatus => ({
  ...figures,
  lastFailure: lastFailure && { ...lastFailure, at: new Date(lastFailure.at) },
});

/** Expression for the time in so many seconds. */
export const inSeconds = (seconds: number | RawBuilder<unknown>) =>
  sql<Date>`clock_timestamp() + make_interval(secs => ${seconds})`;

/** Assignments of an update statement. */
export const assignments = (columns: object) =>
  sql.join(Object.entries(columns).map(([name, value]) => sql`${sql.ref(name)} = ${value}`));

/** Condition that a worker holds an unexpired claim on a row. */
export const IS_HELD = sql`(claim_token is not null and coalesce(lease_until > clock_timestamp(), false))`;

/** Condition that a row is of a claim. */
export const isOfClaim = ({ organization_id, id, token }: RowClaim | OwnRowClaim): Condition =>
  organization_id === undefined
    ? sql`id = ${id} and claim_token = ${token}`
    : sql`organization_id = ${organization_id} and id = ${id} and claim_token = ${token}`;

/** Writes columns of a row while the claim holds. False if the claim is lost. */
export async function writeClaimed(
  db: Database,
  table: keyof DB & string,
  claim: RowClaim | OwnRowClaim,
  columns: object,
): Promise<boolean> {
  const { numAffectedRows = 0n } =
    await sql`update ${sql.table(table)} set ${assignments(columns)} where ${isOfClaim(claim)}`.execute(db);
  return numAffectedRows > 0n;
}

export interface FiguresOptions {
  table: keyof DB & string;
  /** Rows that are counted. */
  of: Condition;
  /** Rows that wait, and since when. */
  waiting: Condition;
  since: Condition;
  /** Rows that were begun more than once, or whose last run failed. */
  retried: Condition;
  /** Rows that failed, when, and why. */
  failure: { is: Condition; at: Condition; text: Condition };
}

/** Reads the figures of claimed rows, for operators. */
export async function readFigures(
  db: Database,
  { table: name, of, waiting, since, retried, failure }: FiguresOptions,
): Promise<WorkStatus> {
  const table = sql.table(name);
  const { rows } = await sql<WorkStatus>`
    select count(*) filter (where ${waiting}) as waiting, count(*) filter (where ${IS_HELD}) as running,
      min(${since}) filter (where ${waiting}) as "oldestWaiting", count(*) filter (where ${retried}) as retried,
      (select json_build_object('at', ${failure.at}, 'error', ${failure.text}) from ${table}
        where ${failure.is} and ${failure.at} is not null order by ${failure.at} desc limit 1) as "lastFailure"
    from ${table} where ${of}`.execute(db);
  return withDate(rows[0]!);
}
