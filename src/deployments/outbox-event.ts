import type { DeploymentOutboxEvent } from '#platform/events/outbox.ts';
import type { Names } from '#deployments/executor/claims.ts';
import type { DeploymentRow } from '#deployments/queries.ts';
import type { Snapshot } from '#deployments/model/snapshot.ts';

/** Returns the event of a deployment for webhooks, without the service that it is about. */
export function outboxEventOf(
  type: DeploymentOutboxEvent['type'],
  deployment: Pick<DeploymentRow, 'id' | 'number' | 'organization_id' | 'snapshot'>,
  names: Omit<Names, 'runtime' | 'isFork'>,
): Omit<DeploymentOutboxEvent, 'service' | 'status'> {
  const { projectId, environmentId } = deployment.snapshot as Snapshot;
  return {
    type,
    organization: { id: deployment.organization_id, name: names.organization },
    project: { id: projectId, name: names.project },
    environment: { id: environmentId, name: names.environment, mode: names.mode },
    deployment_request_id: deployment.id,
    generation: deployment.number,
    sequence: deployment.number * 10 + (type === 'DEPLOYMENT_STARTED' ? 0 : 1),
  };
}
