// A kind of work on a table of its own, for the suites of this module.
import { newId } from '#kernel/ids.ts';
import { sql, type Database } from '#platform/database/index.ts';
import { leasedTable, type Lease, type RowClaim, type WorkKind } from '#platform/work/index.ts';

export interface TestClaim extends RowClaim {
  attempts: number;
}

export type TestLease = Lease<'cancel'>;
export type TestKind = WorkKind<TestClaim, 'cancel'>;

export async function createTestTables(db: Database): Promise<void> {
  await sql`create table test_work (
    id uuid primary key, organization_id uuid not null, status text not null default 'WAITING', outcome text, error text,
    cancel boolean not null default false, claim_token uuid, lease_until timestamptz, attempts integer not null default 0,
    created_at timestamptz not null default clock_timestamp(), started_at timestamptz, ended_at timestamptz)`.execute(
    db,
  );
  await sql`create table test_effect (item uuid not null, worker text not null, step text not null,
    at timestamptz not null default clock_timestamp())`.execute(db);
}

/** Statements on the tests' table. The types of the database do not have it: those of `cluster_work` stand for them. */
export const TEST_TABLE = leasedTable<'cluster_work', 'cancel'>({
  table: 'test_work' as 'cluster_work',
  waiting: 'WAITING',
  running: 'RUNNING',
  failed: sql`outcome = 'ERROR'`,
  reason: sql`case when w.cancel then 'cancel' end`,
});

export const endItem = (db: Database, claim: RowClaim, error: string | null = null) =>
  TEST_TABLE.end(db, claim, { status: 'ENDED', outcome: error === null ? 'SUCCESS' : 'ERROR', error });

/** Records an effect outside the claim, as a call of a runtime is. */
export const leaveEffect = (db: Database, item: string, worker: string, step: string) =>
  sql`insert into test_effect (item, worker, step) values (${item}, ${worker}, ${step})`.execute(db);

export function testKind(db: Database, run: TestKind['run'], options: Partial<Omit<TestKind, 'run'>> = {}): TestKind {
  const leaseSeconds = options.leaseSeconds ?? 1;
  return {
    name: 'test-work',
    leaseSeconds,
    slots: 4,
    pollMs: 20,
    claim: async (on, { limit }) =>
      (
        await sql<TestClaim>`update test_work set ${TEST_TABLE.claiming(leaseSeconds)} where id in (
          select w.id from test_work w where w.status = 'WAITING' or ${TEST_TABLE.isLeft}
          order by w.created_at limit ${limit} for update skip locked) returning *, claim_token as token`.execute(on)
      ).rows,
    renew: TEST_TABLE.renew,
    giveBack: (on, claim, stoppedBy) => TEST_TABLE.giveBack(on, claim, stoppedBy, leaseSeconds),
    attempts: {
      most: 3,
      of: ({ attempts }) => attempts,
      giveUp: (claim) => endItem(db, claim, 'It was begun 3 times without an end.'),
    },
    fields: ({ id }) => ({ item: id }),
    ...options,
    run,
  };
}

/** Makes items and returns their ids. */
export async function makeItems(db: Database, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, () => newId());
  await sql`insert into test_work (id, organization_id) select id, ${newId()} from unnest(${ids}::uuid[]) as id`.execute(
    db,
  );
  return ids;
}

export interface TestItem {
  id: string;
  status: string;
  outcome: string | null;
  error: string | null;
  attempts: number;
  claim_token: string | null;
  lease_until: Date | null;
}

export const itemOf = async (db: Database, id: string): Promise<TestItem> =>
  (await sql<TestItem>`select * from test_work where id = ${id}`.execute(db)).rows[0]!;

export const countEnded = async (db: Database, ids: string[]): Promise<number> =>
  (
    await sql<{
      n: number;
    }>`select count(*) as n from test_work where id = any(${ids}::uuid[]) and status = 'ENDED'`.execute(db)
  ).rows[0]!.n;
