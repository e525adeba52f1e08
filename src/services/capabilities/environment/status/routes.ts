import { visibleEnvironments } from '#platform/access/visibility.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { fetchPage } from '#platform/http/paging.ts';
import { ListOf, PageQuery, PlainListOf } from '#platform/http/schema.ts';
import { environmentStatuses, serviceStatuses } from '#deployments/index.ts';
import { environmentTarget } from '#resources/environment/index.ts';
import { projectTarget } from '#resources/project/index.ts';
import { settleEnvironment } from '#services/capabilities/environment/actions/settle.ts';
import { allStatuses, statusesByStage } from '#services/capabilities/environment/status/list.ts';
import { listOverview } from '#services/capabilities/environment/status/overview.ts';
import {
  EnvironmentOverview,
  EnvironmentStatus,
  EnvironmentStatuses,
  EnvironmentStatusesWithStages,
} from '#services/capabilities/environment/status/schema.ts';
import { Status } from '#services/capabilities/service/status/schema.ts';
import type { Kind } from '#services/kind.ts';

/** Statuses of environments and of all their services. */
export const statusRoutes: Route[] = [
  defineRoute({
    id: 'getEnvironmentStatus',
    method: 'GET',
    path: '/environment/{environmentId}/status',
    tag: 'Environment Main Calls',
    summary: 'Get the status of an environment',
    description:
      'Answers the state of the request under way, else that of the last one; deletions of single services do not count.',
    target: environmentTarget,
    action: 'environment.read',
    answer: { status: 200, body: EnvironmentStatus },
    handler: async (call) => (await environmentStatuses(call.db, call.target, [call.target.id]))[0],
    settle: settleEnvironment,
  }),
  defineRoute({
    id: 'getEnvironmentStatuses',
    method: 'GET',
    path: '/environment/{environmentId}/statuses',
    tag: 'Environment Main Calls',
    summary: 'Get the statuses of an environment and of its services',
    description: 'Answers the environment and every service of it at one point in time, grouped by kind.',
    target: environmentTarget,
    action: 'environment.read',
    answer: { status: 200, body: EnvironmentStatuses },
    handler: (call) => allStatuses(call, call.target),
  }),
  defineRoute({
    id: 'getEnvironmentStatusesWithStages',
    method: 'GET',
    path: '/environment/{environmentId}/statusesWithStages',
    tag: 'Environment Main Calls',
    summary: 'Get the statuses of an environment and of its services by stage',
    description:
      'Answers the stages in their order, each with its services grouped by kind and with the durations of the last deployment.',
    target: environmentTarget,
    action: 'environment.read',
    answer: { status: 200, body: EnvironmentStatusesWithStages },
    handler: (call) => statusesByStage(call, call.target),
  }),
  defineRoute({
    id: 'getProjectEnvironmentsStatus',
    method: 'GET',
    path: '/project/{projectId}/environment/status',
    tag: 'Environments',
    summary: 'Get the statuses of the environments of a project',
    description: 'Answers one status for each environment of the project that you may read.',
    target: projectTarget,
    action: 'project.read',
    filtersRows: true,
    query: PageQuery,
    answer: { status: 200, body: ListOf(EnvironmentStatus) },
    handler: async ({ db, principal, target, query }) => {
      const ids = db
        .selectFrom('environment')
        .select('id')
        .where('organization_id', '=', target.organizationId)
        .where('project_id', '=', target.id)
        .where(visibleEnvironments(principal, target.organizationId))
        .orderBy('created_at')
        .orderBy('id');
      const page = await fetchPage(db, ids, query, (row) => row.id);
      return { ...page, results: await environmentStatuses(db, target, page.results) };
    },
  }),
  defineRoute({
    id: 'getProjectEnvironmentsOverview',
    method: 'GET',
    path: '/project/{projectId}/environment/overview',
    tag: 'Environments',
    summary: 'Get what a page of environments shows: cluster, number of services, status',
    description: 'Answers the environments of the project that you may read without a further call for each.',
    target: projectTarget,
    action: 'project.read',
    filtersRows: true,
    answer: { status: 200, body: PlainListOf(EnvironmentOverview) },
    handler: (call) => listOverview(call, call.principal, call.target),
  }),
];

/** `GET /environment/{id}/<kind>/status` */
export const kindStatusRoutes = (kind: Kind): Route[] => [
  defineRoute({
    id: `getEnvironment${kind.tag}Status`,
    method: 'GET',
    path: `/environment/{environmentId}/${kind.path}/status`,
    tag: kind.listTag,
    summary: `List the statuses of the services of kind ${kind.path} of an environment`,
    description: `Answers one status for each service of kind ${kind.path}, in creation order.`,
    target: environmentTarget,
    action: 'environment.read',
    query: PageQuery,
    answer: { status: 200, body: ListOf(Status) },
    handler: async (call) => {
      const ids = call.db
        .selectFrom('service')
        .select('id')
        .where('organization_id', '=', call.target.organizationId)
        .where('environment_id', '=', call.target.id)
        .where('kind', '=', kind.kind)
        .orderBy('created_at')
        .orderBy('id');
      const page = await fetchPage(call.db, ids, call.query, (row) => row.id);
      return { ...page, results: await serviceStatuses(call.db, call.target, { serviceIds: page.results }) };
    },
  }),
];
