import { defineRoute, type Route } from '#platform/http/route.ts';
import { environmentTarget } from '#resources/environment/index.ts';
import { placeOfEnvironment } from '#services/capabilities/service/actions/request.ts';
import {
  DeploymentPlan,
  PLAN_DESCRIPTION,
  PlanQuery,
  planRequest,
  type PlanNeeds,
} from '#services/capabilities/service/deployment-plan/index.ts';

/** Makes the route that returns the plan of an action on an environment. */
export const environmentPlanRoutes = (needs: PlanNeeds): Route[] => [
  defineRoute({
    id: 'planEnvironmentDeployment',
    method: 'GET',
    path: '/environment/{environmentId}/deploymentPlan',
    tag: 'Environment Actions',
    summary: 'See what an action on an environment would do',
    description: PLAN_DESCRIPTION,
    target: environmentTarget,
    action: 'environment.read',
    query: PlanQuery,
    answer: { status: 200, body: DeploymentPlan },
    errors: [409, 502],
    transaction: false,
    handler: (call) => {
      const { action = 'DEPLOY', executionId } = call.query;
      const request = { action, executionId, serviceIds: null, signal: call.signal };
      return planRequest(call, placeOfEnvironment(call.target), needs, request);
    },
  }),
];
