import { defineRoute, type Route } from '#platform/http/route.ts';
import { findStageOfService, Stage, stageView } from '#resources/deployment-stage/index.ts';
import { serviceTarget } from '#services/service/target.ts';

export const serviceStageRoutes: Route[] = [
  defineRoute({
    id: 'getServiceDeploymentStage',
    method: 'GET',
    path: '/service/{serviceId}/deploymentStage',
    tag: 'Deployment Stage Main Calls',
    summary: 'Get the deployment stage of a service',
    description: 'Answers the stage with all of its services.',
    target: serviceTarget('serviceId', 'Service'),
    action: 'service.read',
    answer: { status: 200, body: Stage },
    handler: async (call) =>
      stageView(call, call.target, await findStageOfService(call.db, call.target, call.target.id)),
  }),
];
