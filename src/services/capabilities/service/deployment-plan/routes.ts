import { defineRoute, type Route } from '#platform/http/route.ts';
import { environmentTarget } from '#resources/environment/index.ts';
import { placeOfEnvironment, placeOfTarget } from '#services/capabilities/service/actions/request.ts';
import { DeploymentPlan, PlanQuery } from '#services/capabilities/service/deployment-plan/schema.ts';
import { planRequest, type PlanNeeds } from '#services/capabilities/service/deployment-plan/service.ts';
import { holderOf, paramOf, type Kind } from '#services/kind.ts';

const DESCRIPTION =
  'Stages, services and steps, what would change in each since its last release, and why it would be built, replaced or left alone. Nothing is requested. Sources are asked for their newest commits.';

/** Makes the routes that return the plan of an action on a service without requesting the action. */
export function planRoutes(kind: Kind, needs: PlanNeeds): Route[] {
  return [
    defineRoute({
      id: `plan${kind.tag}Deployment`,
      method: 'GET',
      path: `/${kind.path}/{${paramOf(kind)}}/deploymentPlan`,
      tag: `${kind.tag} Actions`,
      summary: `See what an action on a service of kind ${kind.path} would do`,
      description: DESCRIPTION,
      target: holderOf(kind).target,
      action: 'service.read',
      query: PlanQuery,
      answer: { status: 200, body: DeploymentPlan },
      errors: [409, 502],
      transaction: false,
      handler: (call) => {
        const { action = 'DEPLOY', executionId } = call.query;
        const request = { action, executionId, serviceIds: [call.target.id], signal: call.signal };
        return planRequest(call, placeOfTarget(call.target), needs, request);
      },
    }),
  ];
}

/** Makes the route that returns the plan of an action on an environment. */
export const environmentPlanRoutes = (needs: PlanNeeds): Route[] => [
  defineRoute({
    id: 'planEnvironmentDeployment',
    method: 'GET',
    path: '/environment/{environmentId}/deploymentPlan',
    tag: 'Environment Actions',
    summary: 'See what an action on an environment would do',
    description: DESCRIPTION,
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
