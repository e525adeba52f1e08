import type { SelectQueryBuilder } from 'kysely';
import { sql, type DB, type Database } from '#platform/database/index.ts';
import type { PageQuery } from '#platform/http/schema.ts';

export interface Page<T> {
  results: T[];
  pagination: { page: number; page_size: number; total_count: number; total_pages: number };
}

const DEFAULT_SIZE = 20;

/** Returns the offset of a page. A page far beyond the end is empty; PostgreSQL cannot count to its offset. */
const offsetOf = (page: number, size: number): number => Math.min((page - 1) * size, Number.MAX_SAFE_INTEGER);

/**
 * Fetches a page of a query, or all of it when no page is asked for (docs/contributing/rules.md 4). The query must have an order. The total
 * is exact on every page, also beyond the end. It is counted by the statement of the page: one of its own took as long again.
 */
export async function fetchPage<Row, View>(
  db: Database,
  query: SelectQueryBuilder<DB, any, Row>,
  ask: PageQuery,
  view: (row: Row) => View,
): Promise<Page<View>> {
  if (ask.page === undefined && ask.page_size === undefined) {
    return wholeList((await query.execute()).map(view));
  }
  const page = ask.page ?? 1;
  const size = ask.page_size ?? DEFAULT_SIZE;
  const all = db.selectFrom(query.clearOrderBy().as('all')).select(sql<number>`count(*)`.as('total'));
  const counted = query.select(sql<number>`(${all})`.as('page_total'));
  const rows = await counted.limit(size).offset(offsetOf(page, size)).execute();
  const total = rows[0]?.page_total ?? (page === 1 ? 0 : (await all.executeTakeFirstOrThrow()).total);
  return {
    results: rows.map((row) => view(row as Row)),
    pagination: { page, page_size: size, total_count: total, total_pages: Math.ceil(total / size) },
  };
}

/** Returns a complete list as its only page. */
export function wholeList<T>(results: T[]): Page<T> {
  return {
    results,
    pagination: {
      page: 1,
      page_size: results.length,
      total_count: results.length,
      total_pages: results.length ? 1 : 0,
    },
  };
}

/** Cuts a page out of a list in memory; for lists that are short by nature (a day's few records), not for tables. */
export function slicePage<T>(all: T[], ask: PageQuery): Page<T> {
  if (ask.page === undefined && ask.page_size === undefined) return wholeList(all);
  const page = ask.page ?? 1;
  const size = ask.page_size ?? DEFAULT_SIZE;
  return {
    results: all.slice((page - 1) * size, page * size),
    pagination: { page, page_size: size, total_count: all.length, total_pages: Math.ceil(all.length / size) },
  };
}
