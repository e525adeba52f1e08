import { defineRoute, type Route } from '#platform/http/route.ts';
import { placeOfTarget } from '#services/capabilities/service/actions/request.ts';
import { DeploymentPlan, PLAN_DESCRIPTION, PlanQuery } from '#services/capabilities/service/deployment-plan/schema.ts';
import type { PlanNeeds } from '#services/capabilities/service/deployment-plan/needs.ts';
import { planRequest } from '#services/capabilities/service/deployment-plan/service.ts';
import { holderOf, paramOf, type Kind } from '#services/kind.ts';

/** Makes the routes that return the plan of an action on a service without requesting the action. */
export function planRoutes(kind: Kind, needs: PlanNeeds): Route[] {
  return [
    defineRoute({
      id: `plan${kind.tag}Deployment`,
      method: 'GET',
      path: `/${kind.path}/{${paramOf(kind)}}/deploymentPlan`,
      tag: `${kind.tag} Actions`,
      summary: `See what an action on a service of kind ${kind.path} would do`,
      description: PLAN_DESCRIPTION,
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
