import { fetchPage, slicePage } from '#platform/http/paging.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { PageQuery, Type, Uuid } from '#platform/http/schema.ts';
import {
  selectHistory,
  listHistoryServices,
  listQueue,
  type HistoryDeployment,
  type HistoryOf as Of,
  type HistoryService,
} from '#deployments/index.ts';
import type { Context } from '#platform/context.ts';
import { environmentTarget } from '#resources/environment/index.ts';
import {
  EnvironmentDeployment,
  EnvironmentExecution,
  EnvironmentQueue,
  HistoryOf,
  ServiceDeployment,
  ServiceExecution,
  ServiceOutcome,
  ServiceQueue,
} from '#services/capabilities/service/history/schema.ts';
import {
  deploymentV1,
  deploymentV2,
  executionV1,
  queuedDeployment,
  queuedService,
  serviceV2,
} from '#services/capabilities/service/history/view.ts';
import { holderOf, paramOf, type Kind } from '#services/kind.ts';
import { serviceTarget } from '#services/service/target.ts';

const DEFAULT_SIZE = 20;

const V1Query = Type.Object({
  ...PageQuery.properties,
  startId: Type.Optional(Type.String({ ...Uuid, description: 'Deployment to begin with.' })),
});
const V2Query = Type.Object({
  ...PageQuery.properties,
  pageSize: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: 'Executions on a page, 20 without.' })),
});

interface Ask {
  page?: number;
  page_size?: number;
  pageSize?: number;
  startId?: string;
}

/** A page of a history, with the services of its deployments in one further statement. */
async function history<View>(
  context: Context,
  scope: { organizationId: string },
  of: Of,
  ask: Ask,
  view: (row: HistoryDeployment, services: HistoryService[]) => View[],
) {
  const page = ask.page ?? 1;
  const size = ask.page_size ?? ask.pageSize ?? DEFAULT_SIZE;
  const query = selectHistory(context.db, scope, of, ask.startId);
  const { results: rows, pagination } = await fetchPage(context.db, query, { page, page_size: size }, (row) => row);
  const services = await listHistoryServices(
    context.db,
    scope,
    rows.map((row) => row.id),
    'serviceId' in of ? of.serviceId : undefined,
  );
  return {
    page,
    page_size: size,
    results: rows.flatMap((row) =>
      view(
        row,
        services.filter((service) => service.deployment_id === row.id),
      ),
    ),
    pagination,
  };
}

async function queue<View>(
  context: Context,
  scope: { organizationId: string },
  of: Of,
  page: PageQuery,
  view: (row: HistoryDeployment, services: HistoryService[]) => View[],
) {
  const rows = await listQueue(context.db, scope, of);
  const services = await listHistoryServices(
    context.db,
    scope,
    rows.map((row) => row.id),
    'serviceId' in of ? of.serviceId : undefined,
  );
  const byDeployment = Map.groupBy(services, (service) => service.deployment_id);
  return slicePage(
    rows.flatMap((row) => view(row, byDeployment.get(row.id) ?? [])),
    page,
  );
}

export const historyRoutes: Route[] = [
  defineRoute({
    id: 'listEnvironmentDeploymentHistory',
    method: 'GET',
    path: '/environment/{environmentId}/deploymentHistory',
    tag: 'Environment Deployment History',
    summary: 'List the deployments of an environment, newest first',
    description: 'Answers a page of deployments with the services of each, by kind.',
    target: environmentTarget,
    action: 'environment.read',
    query: V1Query,
    answer: { status: 200, body: HistoryOf(EnvironmentDeployment) },
    handler: (call) =>
      history(call, call.target, { environmentId: call.target.id }, call.query as Ask, (row, services) => [
        deploymentV1(row, services),
      ]),
  }),
  defineRoute({
    id: 'listEnvironmentDeploymentHistoryV2',
    method: 'GET',
    path: '/environment/{environmentId}/deploymentHistoryV2',
    tag: 'Environment Deployment History',
    summary: 'List the executions of an environment with their stages and services, newest first',
    description:
      'Answers a page of executions with who asked for each, its stages in their order and how each service ended.',
    target: environmentTarget,
    action: 'environment.read',
    query: V2Query,
    answer: { status: 200, body: HistoryOf(EnvironmentExecution) },
    handler: (call) =>
      history(call, call.target, { environmentId: call.target.id }, call.query as Ask, (row, services) => [
        deploymentV2(row, services),
      ]),
  }),
  defineRoute({
    id: 'listDeploymentRequestByEnvironmentId',
    method: 'GET',
    path: '/environment/{environmentId}/deploymentQueue',
    tag: 'Environment Main Calls',
    summary: 'List the requests of an environment that have not ended, in their order',
    description: 'Answers the running request first, then those that wait behind it.',
    target: environmentTarget,
    action: 'environment.read',
    query: PageQuery,
    answer: { status: 200, body: EnvironmentQueue },
    handler: (call) =>
      queue(call, call.target, { environmentId: call.target.id }, call.query, (row, services) => [
        queuedDeployment(row, services),
      ]),
  }),
  defineRoute({
    id: 'listDeploymentRequestByServiceId',
    method: 'GET',
    path: '/service/{serviceId}/deploymentQueue',
    tag: 'Environment Main Calls',
    summary: 'List the requests of a service that have not ended, in their order',
    description: 'Answers the requests of the environment that concern the service, the running one first.',
    target: serviceTarget('serviceId', 'Service'),
    action: 'service.read',
    query: PageQuery,
    answer: { status: 200, body: ServiceQueue },
    handler: (call) =>
      queue(call, call.target, { serviceId: call.target.id }, call.query, (row, services) =>
        services.map((service) => queuedService(row, service)),
      ),
  }),
];

/** Histories of the services of a kind, both versions. */
export function kindHistoryRoutes(kind: Kind): Route[] {
  const { target } = holderOf(kind);
  const one = `/${kind.path}/{${paramOf(kind)}}`;
  const { historyV1 } = kind.capabilities ?? {};
  const asOutcome = historyV1 === 'outcomes';
  const first = defineRoute({
    id: `list${kind.tag}DeploymentHistory`,
    method: 'GET',
    path: `${one}/deploymentHistory`,
    tag: `${kind.tag} Deployment History`,
    summary: `List the deployments of a service of kind ${kind.path}, newest first`,
    description:
      'Answers a page of the deployments that had a part for the service, with the versions that were deployed.',
    target,
    action: 'service.read',
    query: V1Query,
    answer: { status: 200, body: HistoryOf(asOutcome ? ServiceOutcome : ServiceDeployment) },
    handler: (call) =>
      history(call, call.target, { serviceId: call.target.id }, call.query as Ask, (row, services) =>
        services.map((service) => executionV1(row, service, asOutcome)),
      ),
  });
  return [
    ...(historyV1 === 'none' ? [] : [first]),
    defineRoute({
      id: `list${kind.tag}DeploymentHistoryV2`,
      method: 'GET',
      path: `${one}/deploymentHistoryV2`,
      tag: `${kind.tag} Deployment History`,
      summary: `List the executions of a service of kind ${kind.path}, newest first`,
      description: `Answers a page of executions of the ${kind.path} with who asked for each, its steps and how it ended.`,
      target,
      action: 'service.read',
      query: V2Query,
      answer: { status: 200, body: HistoryOf(ServiceExecution) },
      handler: async (call) => {
        const more = await kind.historyOf?.(call, call.target);
        const serviceId = more ? [call.target.id, ...more] : call.target.id;
        return history(call, call.target, { serviceId }, call.query as Ask, (row, services) =>
          services.map((service) => serviceV2(row, service)),
        );
      },
    }),
  ];
}
