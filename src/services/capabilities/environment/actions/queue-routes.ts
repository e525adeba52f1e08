import { defineRoute, type Route, type Target } from '#platform/http/route.ts';
import { sql } from '#platform/database/index.ts';
import { notFound } from '#kernel/errors.ts';
import { named, Type, Uuid } from '#platform/http/schema.ts';
import { cancelDeployment, deploymentState, environmentStatuses, type DeploymentRow } from '#deployments/index.ts';
import { audit } from '#platform/events/audit.ts';
import { EnvironmentStatus } from '#services/capabilities/environment/status/schema.ts';
import { StateEnum } from '#services/capabilities/service/status/schema.ts';

type RequestTarget = DeploymentRow & {
  organizationId: string;
  projectId: string;
  mode: string;
  environment_name: string;
  project_name: string;
};

/** Loads a deployment request; in writes its environment is locked, as for every change of the queue. */
const requestTarget: Target<RequestTarget> = {
  name: 'Deployment request',
  param: 'deploymentRequestId',
  find: async (db, id, organizationIds, { lock }) => {
    const find = () =>
      db
        .selectFrom('deployment')
        .innerJoin('environment', 'environment.id', 'deployment.environment_id')
        .innerJoin('project', 'project.id', 'environment.project_id')
        .selectAll('deployment')
        .select([
          'environment.project_id',
          'environment.mode',
          'environment.name as environment_name',
          'project.name as project_name',
        ])
        .where('deployment.organization_id', '=', sql<string>`any(${organizationIds})`)
        .where('deployment.id', '=', id)
        .executeTakeFirst();
    const row = await find();
    if (row && lock)
      await db
        .selectFrom('environment')
        .select('id')
        .where('organization_id', '=', row.organization_id)
        .where('id', '=', row.environment_id)
        .forUpdate()
        .execute();
    const now = row && lock ? await find() : row;
    return now && { ...now, organizationId: now.organization_id, projectId: now.project_id };
  },
};

const DeploymentRequestStatus = named(
  'DeploymentRequestStatus',
  Type.Object({ deployment_request_id: Uuid, environment_id: Uuid, status: StateEnum }),
);

export const queueRoutes: Route[] = [
  defineRoute({
    id: 'getDeploymentStatusByDeploymentRequestId',
    method: 'GET',
    path: '/environment/deploymentStatus',
    // The reference leaves it untagged.
    tag: 'Environment Deployment Status',
    summary: 'Get the state of one request',
    description: 'Answers the state of the request `deploymentRequestId`, also after it has ended.',
    action: 'authenticated',
    query: Type.Object({ deploymentRequestId: Uuid }),
    answer: { status: 200, body: DeploymentRequestStatus },
    errors: [403, 404],
    handler: async (call) => {
      const organizationIds = call.principal.grants.map((grant) => grant.organizationId);
      const row = await requestTarget.find(call.db, call.query.deploymentRequestId, organizationIds, { lock: false });
      if (!row) throw notFound(requestTarget.name);
      call.require('environment.read', {
        organizationId: row.organizationId,
        projectId: row.projectId,
        mode: row.mode,
      });
      return { deployment_request_id: row.id, environment_id: row.environment_id, status: deploymentState(row) };
    },
  }),
  defineRoute({
    id: 'cancelDeploymentRequest',
    method: 'POST',
    path: '/deploymentQueue/{deploymentRequestId}/cancelDeployment',
    tag: 'Deployment Queue Actions',
    summary: 'Cancel one request: at once while it waits, at a safe point when it runs',
    description: 'Other requests of the environment go on. 409 if the request has ended.',
    target: requestTarget,
    action: 'environment.deploy',
    body: named('CancelRequestBody', Type.Object({ force_cancel: Type.Optional(Type.Boolean()) })),
    optionalBody: true,
    answer: { status: 200, body: EnvironmentStatus },
    errors: [409],
    handler: async (call) => {
      const { target } = call;
      await cancelDeployment(call, target, target, call.body.force_cancel ?? false);
      await audit(call, {
        organizationId: target.organizationId,
        type: 'TRIGGER_CANCEL',
        target: { type: 'ENVIRONMENT', id: target.environment_id, name: target.environment_name },
        project: { id: target.projectId, name: target.project_name },
        environment: { id: target.environment_id, name: target.environment_name },
        after: { deployment_request_id: target.id },
      });
      return (await environmentStatuses(call.db, target, [target.environment_id]))[0];
    },
  }),
];
