import { sql } from 'kysely';
import type { TestApp } from '#test/harness/app.ts';

/** Tables that refused requests may write: they count requests and attempts. */
const BESIDE = new Set(['idempotency_record', 'rate_window', 'sign_in_attempt']);

async function tablesOf({ db }: TestApp): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'public' and c.relkind in ('r', 'p') and not c.relispartition order by 1`.execute(db);
  return rows.map(({ name }) => name);
}

/**
 * Returns a function that computes a digest of all rows of all tables: equal digests mean that nothing was written. Rows count by the
 * transaction that wrote them, as reading their content would take longer than all requests.
 */
export async function digestOf(app: TestApp): Promise<() => Promise<string>> {
  const tables = (await tablesOf(app)).filter((name) => !BESIDE.has(name));
  const parts = tables.map(
    (name) =>
      sql`select ${sql.lit(name)}::text, count(*), coalesce(sum(t.xmin::text::bigint), 0)::text from ${sql.table(name)} t`,
  );
  const { sql: all } = sql`${sql.join(parts, sql` union all `)} order by 1`.compile(app.db);
  // A function keeps its plan: planning takes five times as long as reading.
  await sql`create or replace function digest_of_tables() returns table (name text, rows bigint, written_by text)
    language plpgsql as ${sql.lit(`begin return query ${all}; end`)}`.execute(app.db);
  return async () => JSON.stringify((await sql`select * from digest_of_tables()`.execute(app.db)).rows);
}

/** Returns the rows of all tables that hold a text in any column, also as hexadecimal digits of bytes. */
export async function rowsWith(app: TestApp, text: string): Promise<{ table: string; row: string }[]> {
  const hex = Buffer.from(text).toString('hex');
  const parts = (await tablesOf(app)).map(
    (name) => sql<{ table: string; row: string }>`select ${sql.lit(name)} as "table", left(t::text, 2000) as row
      from ${sql.table(name)} t where position(${text} in t::text) > 0 or position(${hex} in t::text) > 0`,
  );
  return (await sql<{ table: string; row: string }>`${sql.join(parts, sql` union all `)}`.execute(app.db)).rows;
}
