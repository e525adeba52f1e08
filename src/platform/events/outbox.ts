import { json } from '#platform/database/json.ts';
import type { Context } from '#platform/context.ts';

/** Channel on which consumers of the outbox are woken. */
export const OUTBOX_CHANNEL = 'outbox';

/** What the outbox carries by topic. Each topic has one consumer, which deletes the rows that it has dealt with. */
export interface OutboxTopics {
  deployment: DeploymentOutboxEvent;
}

/** A service of a deployment started or ended (decisions.md 40, 41). */
export interface DeploymentOutboxEvent {
  type: 'DEPLOYMENT_STARTED' | 'DEPLOYMENT_SUCCESSFUL' | 'DEPLOYMENT_FAILURE' | 'DEPLOYMENT_CANCELLED';
  organization: { id: string; name: string };
  project: { id: string; name: string };
  environment: { id: string; name: string; mode: string };
  /** `type` is the service's kind: `APPLICATION`, `DATABASE`, … */
  service: { id: string; name: string; type: string };
  deployment_request_id: string;
  /** State of the service. */
  status: string;
  /** Number of the deployment in its environment. */
  generation: number;
  /** Ascends over the events of one service: calls may arrive in another order, because they are repeated. */
  sequence: number;
}

/** Writes one row into the outbox, in the transaction of the change that it tells of; the consumer is woken after the commit. */
export async function publish<Topic extends keyof OutboxTopics>(
  context: Context,
  organizationId: string,
  topic: Topic,
  payload: OutboxTopics[Topic],
): Promise<void> {
  await context.db
    .insertInto('outbox')
    .values({ organization_id: organizationId, topic, payload: json(payload) })
    .execute();
  context.afterCommit(() => context.notify(OUTBOX_CHANNEL));
}
