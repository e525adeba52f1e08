import { visibleEnvironments } from '#platform/access/visibility.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { fetchPage } from '#platform/http/paging.ts';
import { DateTime, ListOf, named, Nullable, OneOf, PageQuery, PlainListOf, Type, Uuid } from '#platform/http/schema.ts';
import { CloudVendor } from '#resources/cluster/index.ts';
import { environmentStatuses, serviceStatuses } from '#deployments/index.ts';
import { EnvironmentMode, environmentTarget } from '#resources/environment/index.ts';
import { projectTarget } from '#resources/project/index.ts';
import type { Kind } from '#services/kind.ts';
import { allStatuses, GROUP_NAMES, statusesByStage } from '#services/capabilities/service/status/list.ts';
import { listOverview } from '#services/capabilities/environment/status/overview.ts';
import { EnvironmentStatus, Status } from '#services/capabilities/service/status/schema.ts';

const grouped = Object.fromEntries(GROUP_NAMES.map((name) => [name, Type.Array(Status)]));

export const EnvironmentStatuses = named(
  'EnvironmentStatuses',
  Type.Object({ environment: EnvironmentStatus, ...grouped }),
);

const StageSteps = Type.Object({
  stage_id: Uuid,
  total_duration_sec: Nullable(Type.Integer()),
  details: Type.Array(
    Type.Object({
      stage_id: Type.Optional(Uuid),
      step_name: Type.Optional(OneOf(['TOTAL', 'QUEUEING', 'PROVISION_BUILDER'])),
      status: Type.Optional(OneOf(['SUCCESS', 'ERROR', 'CANCEL', 'SKIP'])),
      duration_sec: Type.Optional(Type.Integer()),
    }),
  ),
});

export const EnvironmentStatusesWithStages = named(
  'EnvironmentStatusesWithStages',
  Type.Object({
    environment: EnvironmentStatus,
    stages: Type.Array(
      Type.Object({
        ...grouped,
        stage: Type.Object({
          id: Uuid,
          name: Type.String(),
          description: Type.String(),
          steps: StageSteps,
          status: OneOf(['QUEUED', 'ONGOING', 'DONE', 'ERROR', 'SKIPPED', 'CANCELED']),
        }),
      }),
    ),
    pre_check_stage: Type.Object({
      status: OneOf(['SUCCESS', 'ERROR', 'CANCEL', 'SKIP']),
      total_duration_sec: Type.Integer(),
    }),
  }),
);

const EnvironmentOverview = named(
  'EnvironmentOverview',
  Type.Object({
    id: Uuid,
    created_at: DateTime,
    updated_at: DateTime,
    name: Type.String(),
    mode: EnvironmentMode,
    cluster: Type.Object({
      id: Uuid,
      name: Type.String(),
      cloud_provider: CloudVendor,
      is_demo: Type.Boolean(),
    }),
    services_overview: Type.Object({ service_count: Type.Integer(), managed_by: OneOf(['QOVERY', 'ARGOCD', 'MIXED']) }),
    deployment_status: Nullable(EnvironmentStatus),
  }),
);

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
