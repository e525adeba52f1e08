import { defineRoute, type Route } from '#platform/http/route.ts';
import { named, Type } from '#platform/http/schema.ts';
import {
  cancelDeployment,
  listActiveDeployments,
  listHistoryServices,
  type DeploymentRow,
  type ServiceStatus,
} from '#deployments/index.ts';
import { conflict } from '#kernel/errors.ts';
import type { Database } from '#platform/database/index.ts';
import { audit } from '#platform/events/audit.ts';
import { deleteService } from '#services/capabilities/service/actions/delete.ts';
import { statusOfService } from '#services/capabilities/service/actions/request.ts';
import { Status } from '#services/capabilities/service/status/schema.ts';
import { listRuns } from '#services/kinds/agentic-workflow/queries.ts';
import { placeOfService } from '#services/service/service.ts';
import { serviceTarget, type ServiceTarget } from '#services/service/target.ts';

const target = serviceTarget('agenticWorkflowId', 'AgenticWorkflow', 'AGENTIC_WORKFLOW');

/** Makes the status of a workflow that never ran and is deleted at once (docs/contributing/rules.md 19). */
const goneStatus = (before: ServiceStatus) => ({
  ...before,
  state: 'DELETED',
  status_details: { ...before.status_details, action: 'DELETE', status: 'SUCCESS' },
});

/** Lists the deployments under way of a workflow and of its runs. */
async function activeOf(db: Database, workflow: ServiceTarget): Promise<DeploymentRow[]> {
  const runs = await listRuns(db, workflow, workflow.id);
  const places = [{ environment_id: workflow.environmentId, service_id: workflow.id }, ...runs];
  const deployments: DeploymentRow[] = [];
  for (const { environment_id, service_id } of places) {
    const active = await listActiveDeployments(db, workflow, environment_id);
    const ids = active.map(({ id }) => id);
    const own = await listHistoryServices(db, workflow, ids, service_id);
    deployments.push(...active.filter(({ id }) => own.some((service) => service.deployment_id === id)));
  }
  return deployments;
}

/** Endpoints that only agentic workflows have, or that differ from those of other kinds. */
export const agenticWorkflowRoutes: Route[] = [
  defineRoute({
    id: 'deleteAgenticWorkflow',
    method: 'DELETE',
    path: '/agenticWorkflow/{agenticWorkflowId}',
    tag: 'Agentic Workflows',
    summary: 'Delete an agentic workflow',
    description: 'Answers at once; its runs are cancelled, and GET shows it until it is gone.',
    target,
    action: 'service.delete',
    answer: { status: 202, body: Status },
    handler: async (call) => {
      const before = await statusOfService(call, call.target);
      if (!call.target.deleting)
        for (const deployment of await activeOf(call.db, call.target))
          if (deployment.environment_id !== call.target.environmentId)
            await cancelDeployment(call, call.target, deployment);
      await deleteService(call, call.target, {});
      return (await statusOfService(call, call.target)) ?? goneStatus(before!);
    },
  }),
  defineRoute({
    id: 'cancelAgenticWorkflowDeployment',
    method: 'POST',
    path: '/agenticWorkflow/{agenticWorkflowId}/cancelDeployment',
    tag: 'Agentic Workflows',
    summary: 'Cancel what is under way of an agentic workflow',
    description: 'Ends the run at the next safe point. 409 if nothing is under way.',
    target,
    action: 'service.deploy',
    body: named('CancelAgenticWorkflowRequest', Type.Object({ force_cancel: Type.Optional(Type.Boolean()) })),
    optionalBody: true,
    answer: { status: 202, body: null },
    errors: [409],
    handler: async (call) => {
      const { target } = call;
      const deployments = await activeOf(call.db, target);
      if (deployments.length === 0) throw conflict(`There is nothing to cancel of ${target.name}.`);
      for (const deployment of deployments)
        await cancelDeployment(call, target, deployment, call.body.force_cancel ?? false);
      await audit(call, {
        organizationId: target.organizationId,
        type: 'TRIGGER_CANCEL',
        ...placeOfService(target),
        after: { deployment_request_ids: deployments.map(({ id }) => id) },
      });
    },
  }),
];
