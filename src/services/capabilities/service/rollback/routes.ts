import { defineRoute, type Route } from '#platform/http/route.ts';
import { named, Type } from '#platform/http/schema.ts';
import { environmentTarget } from '#resources/environment/index.ts';
import { lockEnvironmentRow } from '#services/capabilities/service/actions/queries.ts';
import {
  placeOfEnvironment,
  placeOfTarget,
  statusOfEnvironment,
  statusOfService,
} from '#services/capabilities/service/actions/request.ts';
import { settleEnvironment, settleService } from '#services/capabilities/service/actions/settle.ts';
import { requestRollback } from '#services/capabilities/service/rollback/service.ts';
import { EnvironmentStatus, Status } from '#services/capabilities/service/status/schema.ts';
import { holderOf, paramOf, type Kind } from '#services/kind.ts';
import { refuseDeleting } from '#services/service/service.ts';

const RollbackRequest = named(
  'RollbackRequest',
  Type.Object({
    execution_id: Type.String({
      maxLength: 64,
      description: 'Execution to go back to, as the histories name it. It must have deployed with success.',
    }),
  }),
);

const DESCRIPTION =
  'Deploys what that execution deployed: image, configuration and variables as they were, secrets in their version of then. The stored configuration stays as it is: where configuration, variables or commit of then are not the present ones, the service shows OUT_OF_DATE.';

/** Going back to an earlier execution, of a service. */
export function rollbackRoutes(kind: Kind): Route[] {
  const { target } = holderOf(kind);
  return [
    defineRoute({
      id: `rollback${kind.tag}`,
      method: 'POST',
      path: `/${kind.path}/{${paramOf(kind)}}/rollback`,
      tag: `${kind.tag} Actions`,
      summary: `Go back to an earlier execution of a service of kind ${kind.path}`,
      description: DESCRIPTION,
      target,
      action: 'service.deploy',
      body: RollbackRequest,
      answer: { status: 200, body: Status },
      errors: [409],
      handler: async (call) => {
        const { target: service } = call;
        refuseDeleting(service);
        await lockEnvironmentRow(call.db, service, service.environmentId);
        const requested = await requestRollback(call, placeOfTarget(service), call.body.execution_id, service.id);
        return { ...(await statusOfService(call, service)), requested };
      },
      settle: (call, answer, seconds) => settleService(call, call.target, answer, seconds, call.signal),
    }),
  ];
}

/** The same of an environment. */
export const environmentRollbackRoutes: Route[] = [
  defineRoute({
    id: 'rollbackEnvironment',
    method: 'POST',
    path: '/environment/{environmentId}/rollback',
    tag: 'Environment Actions',
    summary: 'Go back to an earlier execution of an environment',
    description: `${DESCRIPTION} Services that were deleted since are left out.`,
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
