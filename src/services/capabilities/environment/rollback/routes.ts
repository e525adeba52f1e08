import { defineRoute, type Route } from '#platform/http/route.ts';
import { environmentTarget } from '#resources/environment/index.ts';
import { statusOfEnvironment } from '#services/capabilities/environment/actions/request.ts';
import { settleEnvironment } from '#services/capabilities/environment/actions/settle.ts';
import { EnvironmentStatus } from '#services/capabilities/environment/status/schema.ts';
import { placeOfEnvironment } from '#services/capabilities/service/actions/request.ts';
import {
  requestRollback,
  ROLLBACK_DESCRIPTION,
  RollbackRequest,
} from '#services/capabilities/service/rollback/index.ts';
import { refuseDeleting } from '#services/service/service.ts';

/** Going back to an earlier execution, of an environment. */
export const environmentRollbackRoutes: Route[] = [
  defineRoute({
    id: 'rollbackEnvironment',
    method: 'POST',
    path: '/environment/{environmentId}/rollback',
    tag: 'Environment Actions',
    summary: 'Go back to an earlier execution of an environment',
    description: `${ROLLBACK_DESCRIPTION} Services that were deleted since are left out.`,
    target: environmentTarget,
    action: 'environment.deploy',
    body: RollbackRequest,
    answer: { status: 200, body: EnvironmentStatus },
    errors: [409],
    handler: async (call) => {
      refuseDeleting(call.target);
      const requested = await requestRollback(call, placeOfEnvironment(call.target), call.body.execution_id);
      return { ...(await statusOfEnvironment(call, call.target)), requested };
    },
    settle: settleEnvironment,
  }),
];
