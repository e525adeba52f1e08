import { sql } from 'kysely';
import type { TestApp } from '#test/harness/app.ts';

/** What requests write although they are refused: nothing that a user sees. */
const BESIDE = new Set(['idempotency_record', 'rate_limit_window']);

/** A function that answers a digest of all rows of all tables: equal digests mean that nothing changed. */
export async function digestOf(app: TestApp): Promise<() => Promise<string>> {
  const tables = await sql<{ name: string }>`
    select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'public' and c.relkind in ('r', 'p') and not c.relispartition order by 1`.execute(app.db);
  const parts = tables.rows
    .filter(({ name }) => !BESIDE.has(name))
    .map(
      ({ name }) => sql`select ${sql.lit(name)} as name, count(*) as rows,
      coalesce(sum(hashtextextended(t::text, 0)), 0)::text as sum from ${sql.table(name)} t`,
    );
  const all = sql`${sql.join(parts, sql` union all `)}`;
  return async () => JSON.stringify((await all.execute(app.db)).rows);
}
