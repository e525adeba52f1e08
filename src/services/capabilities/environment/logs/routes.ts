import { defineRoute, type Route } from '#platform/http/route.ts';
import { Type } from '#platform/http/schema.ts';
import { environmentTarget } from '#resources/environment/index.ts';
import { listLog, listLogs } from '#services/capabilities/environment/logs/list.ts';
import { DeploymentLogLine, EnvironmentLogList } from '#services/capabilities/environment/logs/schema.ts';
import { FollowQuery, refuseFollow } from '#services/capabilities/environment/logs/follow.ts';

export const environmentLogRoutes: Route[] = [
  defineRoute({
    id: 'listEnvironmentLog',
    method: 'GET',
    path: '/environment/{environmentId}/log',
    tag: 'Environment Logs',
    summary: 'List the log of the last deployment of an environment, first form',
    description:
      'Answers the lines of the last deployment as plain records. GET …/logs answers them with their stages and steps.',
    target: environmentTarget,
    action: 'environment.read',
    answer: { status: 200, body: EnvironmentLogList },
    handler: (call) => listLog(call, call.target),
  }),
  defineRoute({
    id: 'listEnvironmentLogs',
    method: 'GET',
    path: '/environment/{environmentId}/logs',
    tag: 'Environment Logs',
    summary: 'List the log of a deployment of an environment: what was done, step by step',
    description:
      '`version` names an execution; without it the last one is answered. The answer is a bare array, oldest line first.',
    target: environmentTarget,
    action: 'environment.read',
    query: Type.Object({
      ...FollowQuery,
      version: Type.Optional(Type.String({ description: 'Execution id; the last execution without.' })),
    }),
    answer: { status: 200, body: Type.Array(DeploymentLogLine) },
    handler: (call) => {
      refuseFollow(call.query, call.target.organizationId);
      return listLogs(call, call.target, call.query.version);
    },
  }),
];
