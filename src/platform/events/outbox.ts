import type { RawBuilder } from 'kysely';
import { sql } from '#platform/database/index.ts';

/** Channel on which consumers of the outbox are woken. */
export const OUTBOX_CHANNEL = 'outbox';

/** Payloads of the outbox by topic. Each topic has one consumer, which deletes the rows that it has handled. */
export interface OutboxTopics {
  deployment: DeploymentOutboxEvent;
}

/** Event of a service whose deployment started or ended (docs/contributing/rules.md 40, 41). */
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
  /** Reason of a failure; absent for a good end. */
  error?: {
    code: string;
    step: string | null;
    message: string;
    cause: { code: string; summary: string; fix: string; lines: string[] } | null;
  };
  /** Number of the deployment in its environment. */
  generation: number;
  /** Ascends over the events of one service: calls may arrive in another order, because they are repeated. */
  sequence: number;
}

/**
 * Writes rows into the outbox within the statement of the change that they tell of. The sender wakes the consumer after the commit.
 * `payload` is an SQL expression of the topic's JSON for each row of `from`.
 */
export const outboxInsert = (
  organizationId: string,
  topic: keyof OutboxTopics,
  payload: RawBuilder<unknown>,
  from: RawBuilder<unknown>,
) =>
  sql`insert into outbox (organization_id, topic, payload) select ${organizationId}::uuid, ${topic}, ${payload} from ${from}`;
