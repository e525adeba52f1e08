import type { Insertable } from 'kysely';
import { sql, type Database, type DB, type Transaction } from '#platform/database/index.ts';
import { breakerOn } from '#delivery/receivers/breaker.ts';
import type { Busy } from '#delivery/receivers/fair-share.ts';
import { renewalOf, withDate, type WorkReport, type WorkStatus } from '#platform/work/index.ts';
import type { DeploymentOutboxEvent } from '#platform/events/outbox.ts';

/** Takes the oldest rows of the outbox that no other process is taking; they come back if the transaction fails. */
export const takeOutboxRows = (db: Transaction, limit: number) =>
  db
    .deleteFrom('outbox')
    .where('id', 'in', (outbox) =>
      outbox
        .selectFrom('outbox')
        .select('id')
        .where('topic', '=', 'deployment')
        .orderBy('id')
        .limit(limit)
        .forUpdate()
        .skipLocked(),
    )
    .returning(['id', 'organization_id', sql<DeploymentOutboxEvent>`payload`.as('payload')])
    .execute();

/** Lists and locks the enabled webhooks of some organizations: they stay enabled until the commit. */
export const listEnabledWebhooks = (db: Transaction, organizationIds: string[]) =>
  db
    .selectFrom('webhook')
    .select(['id', 'organization_id', 'kind', 'events', 'subscribed_events'])
    .select(['project_names_filter', 'environment_types_filter'])
    .where('organization_id', '=', sql<string>`any(${organizationIds})`)
    .where('enabled', '=', true)
    .orderBy('created_at')
    .orderBy('id')
    .forShare()
    .execute();

export type SubscribedWebhook = Awaited<ReturnType<typeof listEnabledWebhooks>>[number];

export const insertDeliveries = (db: Transaction, deliveries: Insertable<DB['webhook_delivery']>[]) =>
  db.insertInto('webhook_delivery').values(deliveries).execute();

/** Breaker of webhooks: receivers that failed one call after the other are left alone for a while. */
export const WEBHOOKS = breakerOn('webhook');

/** Locks deliveries that are due, those longest due first; others that claim at the same time pass over them. */
export const lockDue = (db: Transaction, limit: number, busy: Busy) =>
  db
    .selectFrom('webhook_delivery')
    .select(['id', 'organization_id', 'webhook_id', 'kind', 'matched_event', 'attempts', 'claim_token'])
    .select(sql<number>`(select failures from webhook where webhook.id = webhook_id)`.as('failures'))
    .where('state', '=', sql.lit('PENDING')) // In the text: a parameter would keep a generic plan off the partial index.
    .where('next_attempt_at', '<=', sql<Date>`now()`)
    .where('webhook_id', '<>', sql<string>`all(${busy.receiverIds}::uuid[])`)
    .where('organization_id', '<>', sql<string>`all(${busy.organizationIds}::uuid[])`)
    .orderBy('next_attempt_at')
    .limit(limit)
    .forUpdate()
    .skipLocked()
    .execute();

/** Claims locked deliveries. A delivery that is taken over from a worker that is gone goes on with the try it was at. */
export const claimDeliveries = (db: Transaction, ids: string[], leaseSeconds: number) =>
  db
    .updateTable('webhook_delivery as delivery')
    .from('webhook')
    .set({
      tries: sql`tries + (claim_token is null)::integer`,
      attempts: sql`attempts + 1`,
      claim_token: sql`gen_random_uuid()`,
      next_attempt_at: sql`clock_timestamp() + make_interval(secs => ${leaseSeconds})`,
    })
    .whereRef('webhook.id', '=', 'delivery.webhook_id')
    .where('delivery.id', '=', sql<string>`any(${ids})`)
    .returning(['delivery.id', 'delivery.organization_id', 'delivery.webhook_id', 'delivery.kind'])
    .returning(['delivery.matched_event', 'delivery.body', 'delivery.attempts', 'delivery.tries'])
    .returning(['webhook.target_url', 'webhook.target_secret', sql<string>`delivery.claim_token`.as('token')])
    .execute();

export type ClaimedDelivery = Awaited<ReturnType<typeof claimDeliveries>>[number];

/** Renews leases. A claim keeps `next_attempt_at` at the end of its lease. */
export const renewDeliveries = renewalOf('webhook_delivery', { columns: { lease: 'next_attempt_at' } });

/** Ends the attempts that a worker which is gone left open. */
export const endInterruptedAttempts = (db: Transaction, deliveryIds: string[]) =>
  db
    .updateTable('webhook_attempt')
    .set({
      ended_at: sql`now()`,
      status_code: 0,
      response_body: 'The process that made this call ended before an answer was recorded.',
    })
    .where('delivery_id', '=', sql<string>`any(${deliveryIds})`)
    .where('ended_at', 'is', null)
    .execute();

export const insertAttempts = (db: Transaction, attempts: Insertable<DB['webhook_attempt']>[]) =>
  db.insertInto('webhook_attempt').values(attempts).execute();

/** Result of an attempt: the status and body of the answer, or status 0 and the reason why there is none. */
export interface AttemptResult {
  status: number;
  body: string;
}

export const endAttempt = (db: Transaction, id: string, { status, body }: AttemptResult) =>
  db
    .updateTable('webhook_attempt')
    .set({ ended_at: sql`now()`, status_code: status, response_body: body })
    .where('id', '=', id)
    .execute();

/** End of a claim: a final state, or the next attempt after `retryMs`. An attempt that is given back does not count as a try. */
export type ClaimEnd = { state: 'DELIVERED' | 'FAILED' } | { retryMs: number; givenBack?: boolean };

/** Ends a claim; false if it is lost. A delivery that was canceled meanwhile stays so. */
export const endClaim = async (db: Transaction, claim: ClaimedDelivery, end: ClaimEnd): Promise<boolean> => {
  const { numUpdatedRows } = await db
    .updateTable('webhook_delivery')
    .set({
      claim_token: null,
      ...('state' in end
        ? { state: sql`case when state = 'PENDING' then ${end.state} else state end`, next_attempt_at: sql`now()` }
        : {
            next_attempt_at: sql`now() + ${end.retryMs} * interval '1 millisecond'`,
            ...(end.givenBack ? { tries: sql`tries - 1` } : {}),
          }),
    })
    .where('organization_id', '=', claim.organization_id)
    .where('id', '=', claim.id)
    .where('claim_token', '=', claim.token)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
};

/** Gives up deliveries from before a moment that are not under way. Returns their number, at most `limit`. */
export const expireDeliveriesBefore = async (db: Database, before: Date, limit: number): Promise<number> => {
  const result = await db
    .updateTable('webhook_delivery')
    .set({ state: 'FAILED' })
    .where('id', 'in', (delivery) =>
      delivery
        .selectFrom('webhook_delivery')
        .select('id')
        .where('state', '=', sql.lit('PENDING'))
        .where('claim_token', 'is', null)
        .where('created_at', '<', before)
        .limit(limit)
        .forUpdate()
        .skipLocked(),
    )
    .executeTakeFirst();
  return Number(result.numUpdatedRows);
};

/** Removes deliveries of before a moment, with their attempts; answers how many, at most `limit`. */
export const deleteDeliveriesBefore = async (db: Database, before: Date, limit: number): Promise<number> => {
  const result = await db
    .deleteFrom('webhook_delivery')
    .where('id', 'in', (delivery) =>
      delivery
        .selectFrom('webhook_delivery')
        .select('id')
        .where('state', '<>', sql.lit('PENDING'))
        .where('created_at', '<', before)
        .limit(limit),
    )
    .executeTakeFirst();
  return Number(result.numDeletedRows);
};

/** Figures of deliveries: those that are due wait. Of the last failure the time alone is kept here; its answer stands with the attempt. */
export const WEBHOOK_REPORT: WorkReport = {
  name: 'webhook-deliveries',
  async status(db) {
    const isHeld = sql`(claim_token is not null and next_attempt_at > clock_timestamp())`;
    const isDue = sql`next_attempt_at <= clock_timestamp()`;
    const { rows } = await sql<WorkStatus>`
      select count(*) filter (where ${isDue}) as waiting, count(*) filter (where ${isHeld}) as running,
        min(created_at) filter (where ${isDue}) as "oldestWaiting", count(*) filter (where tries > 1) as retried,
        (select json_build_object('at', d.next_attempt_at, 'error',
            (select coalesce('The receiver answered ' || nullif(a.status_code, 0) || '.', 'The receiver did not answer.')
              from webhook_attempt a where a.delivery_id = d.id order by a.number desc limit 1))
          from webhook_delivery d where d.state = 'FAILED' order by d.next_attempt_at desc limit 1) as "lastFailure"
      from webhook_delivery where state = 'PENDING'`.execute(db);
    return withDate(rows[0]!);
  },
};
