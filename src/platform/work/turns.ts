import { sql, type DB } from '#platform/database/index.ts';
import { IS_HELD, type Condition } from '#platform/work/claimed-rows.ts';

export interface TurnOptions {
  /** Condition on the row `w` that it can be claimed. */
  isDue: Condition;
  /** Condition on rows that can be held, for an index; all unless it is said. */
  open?: Condition;
  /** Column by which the rows of an organization follow each other. */
  order: string;
  limit: number;
  /** Rows of an organization that are held at a time in all processes. */
  share: number;
  /** Rows that failed before, and their share, which is apart from that of the others. None unless it is said. */
  failing?: { is: Condition; share: number };
}

/**
 * Returns the statement that locks rows to claim, and returns their ids. Organizations take turns, and each has a share of its own: one with much
 * work, or whose work hangs, keeps the others from nothing, and what failed before keeps up none that did not. The table has the columns of claims.
 */
export function idsInTurn(name: keyof DB & string, options: TurnOptions) {
  const { isDue, open = sql`true`, order, limit, share, failing = { is: sql`false`, share: 0 } } = options;
  const table = sql.table(name);
  const by = sql.ref(`w.${order}`);
  return sql`
    with held as (
      select organization_id, ${failing.is} as failing, count(*) as items from ${table} where ${open} and ${IS_HELD} group by 1, 2
    ), due as (
      select w.id, w.organization_id, ${failing.is} as failing, ${by} as place from ${table} w where ${isDue}
    ), turns as (
      select due.id, failing, coalesce(items, 0) + row_number() over (partition by organization_id, failing order by place, due.id) as turn
      from due left join held using (organization_id, failing)
    )
    select w.id from ${table} w join turns on turns.id = w.id
    where ${isDue} and turn <= case when failing then ${failing.share}::int else ${share}::int end
    order by turn, failing, ${by} limit ${limit} for update of w skip locked`;
}
