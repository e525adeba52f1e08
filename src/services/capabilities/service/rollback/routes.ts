import { defineRoute, type Route } from '#platform/http/route.ts';
import { lockEnvironmentRow } from '#services/capabilities/service/actions/queries.ts';
import { placeOfTarget, statusOfService } from '#services/capabilities/service/actions/request.ts';
import { settleService } from '#services/capabilities/service/actions/settle.ts';
import { ROLLBACK_DESCRIPTION, RollbackRequest } from '#services/capabilities/service/rollback/schema.ts';
import { requestRollback } from '#services/capabilities/service/rollback/service.ts';
import { Status } from '#services/capabilities/service/status/schema.ts';
import { holderOf, paramOf, type Kind } from '#services/kind.ts';
import { refuseDeleting } from '#services/service/service.ts';

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
      description: ROLLBACK_DESCRIPTION,
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
