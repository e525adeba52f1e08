import { kindsWith } from '#kernel/kinds.ts';
import { badRequest, invalidField } from '#kernel/errors.ts';
import { permits, type Principal } from '#platform/access/principal.ts';
import {
  seesGoneEnvironments,
  visibleClusterIds,
  visibleEnvironmentIds,
  visibleProjectIds,
} from '#platform/access/visibility.ts';
import type { Database, Scope } from '#platform/database/index.ts';
import { readCursor, writeCursor } from '#resources/event/cursor.ts';
import * as queries from '#resources/event/queries.ts';
import type { EventQuery, TargetQuery } from '#resources/event/schema.ts';
import { readTimestamp } from '#resources/event/timestamp.ts';

const PAGE_SIZE = 10;

/** Kinds that live in an environment: their targets are asked for by environment (docs/contributing/rules.md, *Endpoints*, endpoint 14). */
const SERVICE_TYPES: readonly string[] = kindsWith('audited');

/** A page of events, the newest first, and the links to its neighbours, which `link` makes of a changed query. */
export async function findEvents(
  db: Database,
  principal: Principal,
  scope: Scope,
  query: EventQuery,
  link: (change: { continueToken?: string; stepBackToken?: string }) => string,
) {
  const { continueToken, stepBackToken } = query;
  if (continueToken !== undefined && stepBackToken !== undefined)
    throw badRequest('continueToken and stepBackToken lead in opposite directions: send one of them.');
  const newer = stepBackToken !== undefined;
  const size = query.pageSize ?? PAGE_SIZE;
  const filter: queries.EventFilter = {
    ...commonFilter(principal, scope, query),
    target_id: query.targetId ?? undefined,
    sub_target_type: query.subTargetType ?? undefined,
    project_id: query.serviceProjectId,
    environment_id: query.serviceEnvironmentId,
  };
  const after = newer
    ? readCursor('stepBackToken', stepBackToken)
    : continueToken === undefined
      ? undefined
      : readCursor('continueToken', continueToken);
  const rows = await queries.listEvents(db, scope, filter, { after, newer, limit: size + 1 });
  const more = rows.length > size;
  const page = newer ? rows.slice(0, size).toReversed() : rows.slice(0, size);
  const [first, last] = [page[0], page.at(-1)];
  const hasNewer = newer ? more : after !== undefined;
  const hasOlder = newer ? after !== undefined : more;
  return {
    links: {
      ...(first && hasNewer ? { previous: link({ stepBackToken: writeCursor(first) }) } : {}),
      ...(last && hasOlder ? { next: link({ continueToken: writeCursor(last) }) } : {}),
    },
    organization_max_limit_reached: false,
    events: page.map(toEventView),
  };
}

/** An event as it is answered. */
export const toEventView = (row: Omit<queries.EventRow, 'micros'>) => ({
  id: row.id,
  timestamp: row.at.toISOString(),
  event_type: row.event_type,
  target_id: row.target_id,
  target_name: row.target_name,
  target_type: row.target_type,
  sub_target_type: row.sub_target_type,
  ...(row.change === null ? {} : { change: JSON.stringify(row.change) }),
  original_change: row.original_change === null ? null : JSON.stringify(row.original_change),
  origin: row.origin,
  triggered_by: row.triggered_by,
  project_id: row.project_id,
  ...(row.project_name === null ? {} : { project_name: row.project_name }),
  environment_id: row.environment_id,
  ...(row.environment_name === null ? {} : { environment_name: row.environment_name }),
  user_agent: row.user_agent,
});

/**
 * Lists the targets of the chosen events, or with `targetLevelToFetch` their projects or environments (docs/contributing/rules.md,
 * *Endpoints*, endpoint 14); 400 where a project or environment has to be named (docs/contributing/rules.md 43).
 */
export async function findTargets(db: Database, principal: Principal, scope: Scope, query: TargetQuery) {
  const level = query.targetLevelToFetch;
  const isService = query.targetType !== undefined && SERVICE_TYPES.includes(query.targetType);
  const wantsEnvironment = query.targetType === 'ENVIRONMENT' || isService;
  if (wantsEnvironment && level !== 'PROJECT' && query.projectId === undefined)
    throw invalidField('projectId', `is required for ${query.targetType}, unless targetLevelToFetch is PROJECT`);
  if (isService && level === undefined && query.environmentId === undefined)
    throw invalidField('environmentId', `is required for ${query.targetType}, unless targetLevelToFetch is given`);
  const filter: queries.EventFilter = {
    ...commonFilter(principal, scope, query),
    project_id: query.projectId,
    environment_id: query.environmentId,
  };
  return { targets: await queries.listTargets(db, scope, filter, level ?? 'TARGET') };
}

function commonFilter(principal: Principal, scope: Scope, query: EventQuery | TargetQuery): queries.EventFilter {
  return {
    from: readTimestamp('fromTimestamp', query.fromTimestamp),
    to: readTimestamp('toTimestamp', query.toTimestamp),
    event_type: query.eventType,
    target_type: query.targetType,
    triggered_by: query.triggeredBy,
    origin: query.origin,
    visible: findVisible(principal, scope),
  };
}

/** Places whose events the caller may read; null for all. Each kind of place is asked about with `event.read`. */
function findVisible(principal: Principal, { organizationId }: Scope): queries.Visible | null {
  const environmentIds = visibleEnvironmentIds(principal, organizationId, 'event.read');
  if (environmentIds === null) return null;
  const projectIds = visibleProjectIds(principal, organizationId, 'event.read')!;
  return {
    ofOrganization: permits(principal, 'event.read', { organizationId }),
    projectIds,
    environmentIds,
    wholeProjectIds: projectIds.filter((projectId) =>
      seesGoneEnvironments(principal, { organizationId, projectId }, 'event.read'),
    ),
    clusterIds: visibleClusterIds(principal, organizationId, 'event.read')!,
  };
}
