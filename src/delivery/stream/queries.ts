import { sql, type Database } from '#platform/database/index.ts';
import { STREAM_TYPES, type StreamFilter, type StreamRow } from '#platform/events/stream.ts';
import { ensureLine, LINE_HAS_ENDED } from '#delivery/stream/line.ts';
import { compare, positionOf, type Position } from '#delivery/stream/position.ts';

/** Filter of a page: several organizations at once, or one organization with the rest of a stream's filter. */
export type PageFilter = Omit<StreamFilter, 'organizationId' | 'types'> & {
  organizationIds: string[];
  types?: StreamFilter['types'];
};

/** Events after a place, and how far they reach. */
export interface Page {
  /** Line of transactions that they are of: another one after a restore. */
  line: string;
  rows: StreamRow[];
  /** Position up to which `rows` holds everything that was asked for. */
  position: Position;
  /** True if there may be more rows before `horizon`. */
  full: boolean;
  /** Place of the last event of all that can be read: nothing appears before it any more. Who wants to hear from now on begins here. */
  horizon: Position;
  /** True if events wait for a transaction that is still under way. */
  pending: boolean;
  /** Events up to here were removed. */
  removed: Position;
}

interface State {
  line: string;
  removed_xid: string;
  removed_id: number;
  last_xid: string | null;
  last_id: number | null;
  pending: boolean;
  line_has_ended: boolean;
}
type Row = State & (StreamRow | { [K in keyof StreamRow]: null });

/**
 * Reads a page of events in their order. Only those of transactions below the oldest one that is under way are answered: whatever comes
 * later has a higher number, so that nothing can be skipped (docs/decisions/0010-the-stream-is-read-by-transaction.md). All of it is one statement:
 * rows, horizon and retention are of the same snapshot.
 */
export async function readPage(db: Database, filter: PageFilter, after: Position, limit: number): Promise<Page> {
  const rows = await selectPage(db, filter, after, limit);
  if (!rows[0]?.line_has_ended) return pageOf(rows, limit);
  await ensureLine(db);
  return pageOf(await selectPage(db, filter, after, limit), limit);
}

async function selectPage(db: Database, filter: PageFilter, after: Position, limit: number): Promise<Row[]> {
  const { organizationIds, types = STREAM_TYPES } = filter;
  const equals = (column: string, value: string | undefined) =>
    sql`(${value ?? null}::uuid is null or e.${sql.ref(column)} = ${value ?? null})`;
  const { rows } = await sql<Row>`
    select state.line, state.removed_xid, state.removed_id, last.xid as last_xid, last.id as last_id,
      exists (select from stream_event late where late.xid >= pg_snapshot_xmin(pg_current_snapshot())) as pending,
      ${LINE_HAS_ENDED} as line_has_ended,
      event.*
    from stream_state state left join lateral (
      select xid, id from stream_event where xid < pg_snapshot_xmin(pg_current_snapshot()) order by xid desc, id desc limit 1
    ) last on true left join lateral (
      select page.xid, page.id, page.organization_id, page.at, page.type, page.project_id, page.environment_id, page.service_id,
        page.deployment_id, page.data, environment.mode, environment.cluster_id, environment.name as environment_name,
        project.name as project_name, audit.row as audit
      from (
        select one.* from unnest(${organizationIds}::uuid[]) as wanted(id) cross join lateral (
          select * from stream_event e
          where e.organization_id = wanted.id and (e.xid, e.id) > (${String(after.xid)}::xid8, ${after.id}::bigint)
            and e.xid < pg_snapshot_xmin(pg_current_snapshot()) and e.type = any(${types as string[]}::text[])
            and ${equals('project_id', filter.projectId)} and ${equals('environment_id', filter.environmentId)}
            and (e.type = 'log' or ${equals('service_id', filter.serviceId)}) and ${equals('deployment_id', filter.deploymentId)}
          order by e.xid, e.id limit ${limit}
        ) one order by one.xid, one.id limit ${limit}
      ) page
      -- With limits, so that no plan reads these tables whole, however many rows it expects.
      left join lateral (select mode, cluster_id, name from environment
        where environment.id = page.environment_id and environment.organization_id = page.organization_id limit 1) environment on true
      left join lateral (select name from project
        where project.id = page.project_id and project.organization_id = page.organization_id limit 1) project on true
      left join lateral (select to_jsonb(audit_event) as row from audit_event
        where audit_event.at = page.at and audit_event.id = page.audit_id and audit_event.organization_id = page.organization_id
        limit 1) audit on true
    ) event on true
    order by event.xid, event.id`.execute(db);
  return rows;
}

function pageOf(rows: Row[], limit: number): Page {
  const [first] = rows;
  if (!first) throw new Error('The table stream_state has no row: a migration made it, and nothing removes it.');
  const events = first.id === null ? [] : (rows as (State & StreamRow)[]);
  const removed = { xid: BigInt(first.removed_xid), id: first.removed_id };
  const last = first.last_xid === null ? removed : { xid: BigInt(first.last_xid), id: first.last_id! };
  const horizon = compare(last, removed) >= 0 ? last : removed;
  const full = limit > 0 && events.length === limit;
  return {
    line: first.line,
    rows: events,
    position: full ? positionOf(events.at(-1)!) : horizon,
    full,
    horizon,
    pending: first.pending,
    removed,
  };
}
