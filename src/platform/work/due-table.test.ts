import { afterEach, beforeAll, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { sql, type DB } from '#platform/database/index.ts';
import { dueTable, type RowClaim } from '#platform/work/index.ts';
import { useApp } from '#test/harness/app.ts';

const app = useApp();
const name = 'test_due' as keyof DB & string;
beforeAll(() =>
  sql`create table test_due (id uuid primary key, organization_id uuid not null, name text, claim_token uuid, lease_until timestamptz,
    next_at timestamptz not null default now(), failures integer not null default 0, error text, looked_at timestamptz)`.execute(
    app.db,
  ),
);
afterEach(() => sql`truncate test_due`.execute(app.db));

interface Claim extends RowClaim {
  name: string;
}

const table = dueTable<Claim, typeof name>({
  table: name,
  columns: ['name' as never],
  retrySeconds: 60,
  failing: { failures: sql`failures + 1` } as never,
  failure: { is: sql`failures > 0`, at: sql.ref('looked_at'), text: sql.ref('error') },
});

const request = { limit: 10, nodeId: newId(), leaseSeconds: 15 };
const insert = (name: string, dueIn = 0) =>
  sql`insert into test_due (id, organization_id, name, next_at)
    values (${newId()}, ${newId()}, ${name}, now() + make_interval(secs => ${dueIn}))`.execute(app.db);
const namesOf = (claims: Claim[]) => claims.map((claim) => claim.name).sort();
const rows = async () => (await sql<any>`select *, next_at > now() + interval '30 seconds' as later from test_due`.execute(app.db)).rows; // prettier-ignore

test('a row that is due is claimed by one process, the longest due first, and again when the lease is over', async () => {
  await insert('new', -1);
  await insert('old', -100);
  await insert('later', 100);
  expect(namesOf(await table.claim(app.db, { ...request, limit: 1 }))).toEqual(['old']);
  const both = await Promise.all([table.claim(app.db, request), table.claim(app.db, request)]);
  expect(namesOf(both.flat())).toEqual(['new']);
  expect(await table.status(app.db)).toMatchObject({ waiting: 0, running: 2 });
  await sql`update test_due set lease_until = now() - interval '1 second' where name = 'old'`.execute(app.db);
  expect(namesOf(await table.claim(app.db, request))).toEqual(['old']);
  expect(await table.claim(app.db, request, sql`name = 'later'`)).toEqual([]);
});

test('only the holder of a claim writes its end, which makes the row due again at its time', async () => {
  await insert('one');
  const [first] = await table.claim(app.db, request);
  await sql`update test_due set lease_until = now() - interval '1 second'`.execute(app.db);
  const [second] = await table.claim(app.db, request);
  const end = { next_at: sql`now() + interval '1 hour'` } as never;
  expect(await table.hold(app.db, first!)).toBe(false);
  expect(await table.end(app.db, first!, end)).toBe(false);
  expect(await table.hold(app.db, second!)).toBe(true);
  expect(await table.end(app.db, second!, end)).toBe(true);
  expect(await rows()).toMatchObject([{ claim_token: null, lease_until: null, later: true }]);
});

test('a row whose worker was stopped stays due, and one whose worker failed rests', async () => {
  await insert('one');
  const [first] = await table.claim(app.db, request);
  await table.giveBack(app.db, first!, 'order');
  expect(await rows()).toMatchObject([{ claim_token: null, failures: 0, later: false }]);
  const [second] = await table.claim(app.db, request);
  await table.giveBack(app.db, second!, 'failure');
  expect(await rows()).toMatchObject([{ claim_token: null, failures: 1, later: true }]);
  await sql`update test_due set error = 'away', looked_at = '2026-01-01T00:00:00Z'`.execute(app.db);
  expect(await table.status(app.db)).toMatchObject({
    waiting: 0,
    retried: 1,
    lastFailure: { at: new Date('2026-01-01T00:00:00Z'), error: 'away' },
  });
});
