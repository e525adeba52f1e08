import type { Insertable, Updateable } from 'kysely';
import { sql, type Database, type DB, type Scope } from '#platform/database/index.ts';

const selectWebhooks = (db: Database) => db.selectFrom('webhook').selectAll();

export type WebhookRow = NonNullable<Awaited<ReturnType<typeof findWebhookById>>>;
export type AttemptRow = Awaited<ReturnType<ReturnType<typeof listAttempts>['execute']>>[number];

/** Webhooks of an organization in creation order. */
export const listWebhooks = (db: Database, scope: Scope) =>
  selectWebhooks(db).where('organization_id', '=', scope.organizationId).orderBy('created_at').orderBy('id');

/** Finds a webhook. `lock` leaves room for the key checks of a claim, which holds a delivery that an edit waits for. */
export const findWebhookById = (db: Database, organizationIds: string[], id: string, lock = false) => {
  const query = selectWebhooks(db)
    .where('organization_id', '=', sql<string>`any(${organizationIds})`)
    .where('id', '=', id);
  return (lock ? query.forNoKeyUpdate() : query).executeTakeFirst();
};

export const insertWebhook = (db: Database, webhook: Insertable<DB['webhook']>) =>
  db.insertInto('webhook').values(webhook).returningAll().executeTakeFirstOrThrow();

export const updateWebhook = (db: Database, scope: Scope, id: string, change: Updateable<DB['webhook']>) =>
  db
    .updateTable('webhook')
    .set({ ...change, updated_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow();

export const deleteWebhookRow = (db: Database, scope: Scope, id: string) =>
  db.deleteFrom('webhook').where('organization_id', '=', scope.organizationId).where('id', '=', id).execute();

/** Deletes the deliveries before their webhook: in the other order a claim under way and the cascade would wait for each other. */
export const deleteDeliveries = (db: Database, scope: Scope, webhookId: string) =>
  db
    .deleteFrom('webhook_delivery')
    .where('organization_id', '=', scope.organizationId)
    .where('webhook_id', '=', webhookId)
    .execute();

/** Cancels waiting deliveries: a webhook that is switched off is not called for them either. */
export const cancelPendingDeliveries = (db: Database, scope: Scope, webhookId: string) =>
  db
    .updateTable('webhook_delivery')
    .set({ state: 'CANCELED' })
    .where('organization_id', '=', scope.organizationId)
    .where('webhook_id', '=', webhookId)
    .where('state', '=', 'PENDING')
    .execute();

/** Lists finished attempts of a webhook, the newest first: of calls about the given environments, or all of them. */
export const listAttempts = (db: Database, scope: Scope, webhookId: string, environmentIds: string[] | null) =>
  db
    .selectFrom('webhook_attempt as attempt')
    .innerJoin('webhook_delivery as delivery', 'delivery.id', 'attempt.delivery_id')
    .selectAll('attempt')
    .select('delivery.body')
    .where('attempt.organization_id', '=', scope.organizationId)
    .where('attempt.webhook_id', '=', webhookId)
    .where('attempt.ended_at', 'is not', null)
    // A call in the form of Slack names its environment in words only: who does not see all environments sees none of these.
    .$if(environmentIds !== null, (query) =>
      query.where(
        sql<boolean>`case when delivery.kind <> 'SLACK'
          then delivery.body::jsonb #>> '{payload,environment_id}' = any(${environmentIds}) else false end`,
      ),
    )
    .orderBy('attempt.id', 'desc');

/** Locks the delivery of an attempt against the worker that would claim it. */
export const lockDeliveryOfAttempt = (db: Database, scope: Scope, webhookId: string, attemptId: string) =>
  db
    .selectFrom('webhook_delivery')
    .selectAll()
    .where('organization_id', '=', scope.organizationId)
    .where('webhook_id', '=', webhookId)
    .where('id', '=', (attempt) =>
      attempt
        .selectFrom('webhook_attempt')
        .select('delivery_id')
        .where('organization_id', '=', scope.organizationId)
        .where('id', '=', attemptId),
    )
    .forUpdate()
    .executeTakeFirst();

/** Makes a delivery due at once, with its whole retry schedule before it: it expires as a new one does. */
export const renewDelivery = (db: Database, scope: Scope, id: string) =>
  db
    .updateTable('webhook_delivery')
    .set({ state: 'PENDING', tries: 0, next_attempt_at: sql`now()`, created_at: sql`now()` })
    .where('organization_id', '=', scope.organizationId)
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow();
