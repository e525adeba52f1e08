import { defineRoute, type Route } from '#platform/http/route.ts';
import { PageQuery } from '#platform/http/schema.ts';
import { environmentTarget } from '#resources/environment/index.ts';
import {
  EnvironmentDeployment,
  EnvironmentExecution,
  EnvironmentQueue,
} from '#services/capabilities/environment/history/schema.ts';
import { deploymentV1, deploymentV2, queuedDeployment } from '#services/capabilities/environment/history/view.ts';
import {
  listHistory,
  listRequests,
  V1Query,
  V2Query,
  type HistoryQuery,
} from '#services/capabilities/service/history/list.ts';
import { HistoryOf } from '#services/capabilities/service/history/schema.ts';

/** Histories and queue of an environment. */
export const environmentHistoryRoutes: Route[] = [
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
      listHistory(call, call.target, { environmentId: call.target.id }, call.query as HistoryQuery, (row, services) => [
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
      listHistory(call, call.target, { environmentId: call.target.id }, call.query as HistoryQuery, (row, services) => [
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
      listRequests(call, call.target, { environmentId: call.target.id }, call.query, (row, services) => [
        queuedDeployment(row, services),
      ]),
  }),
];
