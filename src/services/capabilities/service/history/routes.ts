import { defineRoute, type Route } from '#platform/http/route.ts';
import { PageQuery } from '#platform/http/schema.ts';
import {
  listHistory,
  listRequests,
  V1Query,
  V2Query,
  type HistoryQuery,
} from '#services/capabilities/service/history/list.ts';
import {
  HistoryOf,
  ServiceDeployment,
  ServiceExecution,
  ServiceOutcome,
  ServiceQueue,
} from '#services/capabilities/service/history/schema.ts';
import { executionV1, queuedService, serviceV2 } from '#services/capabilities/service/history/view.ts';
import { holderOf, paramOf, type Kind } from '#services/kind.ts';
import { serviceTarget } from '#services/service/target.ts';

/** Requests of a service, whatever its kind. */
export const serviceQueueRoutes: Route[] = [
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
      listRequests(call, call.target, { serviceId: call.target.id }, call.query, (row, services) =>
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
      listHistory(call, call.target, { serviceId: call.target.id }, call.query as HistoryQuery, (row, services) =>
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
        return listHistory(call, call.target, { serviceId }, call.query as HistoryQuery, (row, services) =>
          services.map((service) => serviceV2(row, service)),
        );
      },
    }),
  ];
}
