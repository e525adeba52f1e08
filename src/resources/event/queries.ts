import type { SelectQueryBuilder } from 'kysely';
import { sql, type Database, type DB, type Scope } from '#platform/database/index.ts';
import type { Cursor } from '#resources/event/cursor.ts';

/** Filter of events; times in microseconds since 1970. */
export interface EventFilter {
  from?: number;
  to?: number;
  event_type?: string;
  target_type?: string;
  target_id?: string;
  sub_target_type?: string;
  triggered_by?: string;
  origin?: string;
  project_id?: string;
  environment_id?: string;
  /** Places whose events the caller sees; null for all. */
  visible: Visible | null;
}

/** Places whose events a caller sees. */
export interface Visible {
  /** True if events that belong to no project and no cluster are seen. */
  ofOrganization: boolean;
  projectIds: string[];
  environmentIds: string[];
  /** Projects whose deleted environments are seen, too. */
  wholeProjectIds: string[];
  clusterIds: string[];
}

const COLUMNS = [
  'event_type',
  'target_type',
  'target_id',
  'sub_target_type',
  'triggered_by',
  'origin',
  'project_id',
  'environment_id',
] as const;

/** Converts microseconds exactly, unlike `to_timestamp`, which computes with fractions of seconds. */
const moment = (micros: number) => sql<Date>`(timestamptz 'epoch' + ${micros} * interval '1 microsecond')`;

type Events<O> = SelectQueryBuilder<DB, 'audit_event', O>;

function chosen<O>(query: Events<O>, scope: Scope, filter: EventFilter): Events<O> {
  let next = query.where('audit_event.organization_id', '=', scope.organizationId);
  for (const column of COLUMNS)
    if (filter[column] !== undefined) next = next.where(`audit_event.${column}`, '=', filter[column]);
  if (filter.from !== undefined) next = next.where('at', '>=', moment(filter.from));
  if (filter.to !== undefined) next = next.where('at', '<', moment(filter.to));
  return next;
}

/**
 * Condition that leaves out events of custom roles, whose content names every project. Callers who do not see all projects read roles at
 * the roles' own address.
 */
const isNoRole = sql<boolean>`audit_event.sub_target_type is distinct from 'CUSTOM_ROLE'`;

function seen(visible: Visible | null) {
  if (!visible) return sql<boolean>`true`;
  const { ofOrganization, projectIds, environmentIds, wholeProjectIds, clusterIds } = visible;
  return sql<boolean>`case
    when project_id is null and target_type = 'CLUSTER' then target_id = any(${clusterIds}::uuid[])
    when project_id is null then ${ofOrganization}
    when environment_id is null then project_id = any(${projectIds}::uuid[])
    else environment_id = any(${environmentIds}::uuid[]) or project_id = any(${wholeProjectIds}::uuid[]) end`;
}

/** Lists events older than a cursor, the newest first; with `newer` those after the cursor, the oldest first. */
export const listEvents = (
  db: Database,
  scope: Scope,
  filter: EventFilter,
  page: { after?: Cursor; newer: boolean; limit: number },
) => {
  const direction = page.newer ? 'asc' : 'desc';
  let query = chosen(db.selectFrom('audit_event'), scope, filter).where(seen(filter.visible));
  if (filter.visible) query = query.where(isNoRole);
  if (page.after) {
    const { micros, id } = page.after;
    const beyond = page.newer ? sql.raw('>') : sql.raw('<');
    query = query.where(sql<boolean>`(at, id) ${beyond} (${moment(micros)}, ${id})`);
  }
  return query
    .select(['id', 'at', 'event_type', 'target_type', 'target_id', 'target_name', 'sub_target_type'])
    .select(['project_id', 'project_name', 'environment_id', 'environment_name', 'triggered_by', 'origin'])
    .select(['user_agent', 'change', 'original_change'])
    .select(sql<number>`(extract(epoch from at) * 1000000)::bigint`.as('micros'))
    .orderBy('at', direction)
    .orderBy('id', direction)
    .limit(page.limit)
    .execute();
};

export type EventRow = Awaited<ReturnType<typeof listEvents>>[number];

const LEVELS = {
  TARGET: ['target_id', 'target_name'],
  PROJECT: ['project_id', 'project_name'],
  ENVIRONMENT: ['environment_id', 'environment_name'],
} as const;

/** Filters that need the events themselves: the table of targets does not have these columns. */
const OF_EVENTS = ['from', 'to', 'event_type', 'triggered_by', 'origin'] as const;

/** Lists the distinct targets, projects or environments of events, each under its newest name, ordered by name. */
export const listTargets = (db: Database, scope: Scope, filter: EventFilter, level: keyof typeof LEVELS) => {
  const [id, name] = LEVELS[level];
  let targets = db
    .selectFrom('audit_target as target')
    .where('target.organization_id', '=', scope.organizationId)
    .where(id, 'is not', null)
    .where(seen(filter.visible));
  for (const column of ['target_type', 'project_id', 'environment_id'] as const)
    if (filter[column] !== undefined) targets = targets.where(column, '=', filter[column]);
  if (OF_EVENTS.some((column) => filter[column] !== undefined))
    targets = targets.where(({ exists, selectFrom }) =>
      exists(
        chosen(selectFrom('audit_event'), scope, filter)
          .where(
            sql<boolean>`(audit_event.target_type, audit_event.target_id) = (target.target_type, target.target_id)`,
          )
          .select(sql.lit(1).as('one')),
      ),
    );
  return db
    .selectFrom(
      targets
        .distinctOn(id)
        .select([`${id} as id`, `${name} as name`])
        .orderBy(id)
        .orderBy('first_at', 'desc')
        .as('newest'),
    )
    .select(['id', 'name'])
    .orderBy(sql`lower(name)`)
    .orderBy('id')
    .execute();
};
