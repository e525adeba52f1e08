import { defineRoute, type Route } from '#platform/http/route.ts';
import { organizationTarget } from '#resources/organization/index.ts';
import { linkTo } from '#resources/event/link.ts';
import { EventList, EventQuery, TargetList, TargetQuery } from '#resources/event/schema.ts';
import { findEvents, findTargets } from '#resources/event/service.ts';

const tag = 'Organization Event';

export const eventRoutes: Route[] = [
  defineRoute({
    id: 'getOrganizationEvents',
    method: 'GET',
    path: '/organization/{organizationId}/events',
    tag,
    summary: 'List what happened in an organization, the newest first',
    description:
      'Answers who changed what, with the state before and after without secrets. `links` and `continueToken` lead to older events.',
    target: organizationTarget,
    action: 'event.read',
    filtersRows: true,
    query: EventQuery,
    answer: { status: 200, body: EventList },
    handler: (call) => findEvents(call.db, call.principal, call.target, call.query, linkTo(call)),
  }),
  defineRoute({
    id: 'getOrganizationEventTargets',
    method: 'GET',
    path: '/organization/{organizationId}/targets',
    tag,
    summary: 'List what there are events about',
    description:
      'Answers id and name of each target. Environments take `projectId` in the query and services `environmentId`, unless `targetLevelToFetch` asks for that level.',
    target: organizationTarget,
    action: 'event.read',
    filtersRows: true,
    query: TargetQuery,
    answer: { status: 200, body: TargetList },
    handler: ({ db, principal, target, query }) => findTargets(db, principal, target, query),
  }),
];
