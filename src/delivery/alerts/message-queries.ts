import { countChanged, inBatches } from '#platform/database/batches.ts';
import { sql, type Database, type Transaction } from '#platform/database/index.ts';
import { leasedTable, type RowClaim, type WorkReport } from '#platform/work/index.ts';
import { breakerOn } from '#delivery/receivers/breaker.ts';
import type { Busy } from '#delivery/receivers/fair-share.ts';
import { EXPIRY_HOURS, KEPT_DAYS } from '#delivery/receivers/schedule.ts';
import type { Content } from '#delivery/alerts/content.ts';
import { DESTINATION_COLUMNS, type DestinationColumns } from '#resources/alert-receiver/index.ts';

/** Claim on a message, with the destination of its receiver. */
export interface MessageClaim extends RowClaim, DestinationColumns {
  rule_id: string;
  receiver_id: string;
  content: Content;
  /** Claims so far, this one among them. */
  attempts: number;
  /** Calls that have failed. */
  tries: number;
}

/** Messages that one statement gives up or removes. */
const BATCH = 1_000;

const TABLE = leasedTable({
  table: 'alert_message',
  waiting: 'WAITING',
  running: 'RUNNING',
  failed: sql`error is not null`,
});

export const { renew: renewMessages, giveBack: giveBackMessage } = TABLE;

/** Breaker of receivers: those that failed one call after the other are left alone for a while. */
export const RECEIVERS = breakerOn('alert_receiver');

/** Figures of messages, for operators. */
export const ALERT_REPORT: WorkReport = { name: 'alert-messages', status: TABLE.status };

export interface DueMessage {
  id: string;
  receiver_id: string;
  /** Calls of its receiver that failed one after the other. */
  failures: number;
}

/** Locks messages that are due, those longest due first. A receiver gets the messages of a rule one after the other, in their order. */
export async function lockDue(db: Transaction, limit: number, busy: Busy): Promise<DueMessage[]> {
  const { rows } = await sql<DueMessage>`
    select w.id, w.receiver_id, (select r.failures from alert_receiver r where r.id = w.receiver_id) as failures from alert_message w
    where w.status <> 'ENDED' and w.due_at <= clock_timestamp()
      and (w.status = 'WAITING' and (w.lease_until is null or w.lease_until < clock_timestamp()) or ${TABLE.isLeft})
      and w.receiver_id <> all(${busy.receiverIds}::uuid[]) and w.organization_id <> all(${busy.organizationIds}::uuid[])
      and not exists (select from alert_message b where b.rule_id = w.rule_id and b.receiver_id = w.receiver_id
        and b.number < w.number and b.status <> 'ENDED')
    order by w.due_at limit ${limit} for update of w skip locked`.execute(db);
  return rows;
}

const DESTINATION = sql.join(DESTINATION_COLUMNS.map((name) => sql.ref(`r.${name}`)));

/** Claims locked messages. */
export async function claimMessages(db: Transaction, ids: string[], leaseSeconds: number): Promise<MessageClaim[]> {
  const { rows } = await sql<MessageClaim>`
    update alert_message m set ${TABLE.claiming(leaseSeconds)} from alert_receiver r
    where m.id = any(${ids}::uuid[]) and r.id = m.receiver_id
    returning m.id, m.organization_id, m.rule_id, m.receiver_id, m.content, m.attempts, m.tries, m.claim_token as token,
      ${DESTINATION}`.execute(db);
  return rows;
}

/** Frees a message whose call failed, for another call after `waitMs`. Throws ClaimLost. */
export const { putOff } = TABLE;

/** Writes the end of a message; `error` says why it did not arrive. Throws ClaimLost. */
export const endMessage = (db: Database, claim: MessageClaim, error: string | null): Promise<void> =>
  TABLE.end(db, claim, { status: 'ENDED', error, ...(error === null ? {} : { tries: sql`tries + 1` }) });

/** Writes why messages of a rule do not arrive at a receiver; null once one has. */
export async function noteDelivery(
  db: Database,
  { organization_id, rule_id, receiver_id }: MessageClaim,
  error: string | null,
): Promise<void> {
  await sql`update alert_rule_receiver set error = ${error} where organization_id = ${organization_id}
    and rule_id = ${rule_id} and receiver_id = ${receiver_id} and error is distinct from ${error}`.execute(db);
  await sql`update alert_receiver set delivery_error = ${error} where organization_id = ${organization_id}
    and id = ${receiver_id} and delivery_error is distinct from ${error}`.execute(db);
}

/** Gives up messages that could not be sent for a day and are not under way; answers how many. */
export const expireMessages = (db: Database, signal?: AbortSignal): Promise<number> =>
  inBatches(BATCH, signal, async () => {
    const { rows } = await sql<{ count: number }>`
      with gone as (
        update alert_message set status = 'ENDED', ended_at = clock_timestamp(),
          error = coalesce(error || ' ', '') || 'The message was given up: it could not be sent within ' || ${EXPIRY_HOURS}::integer || ' hours.'
        where id in (select id from alert_message where status = 'WAITING' and claim_token is null
          and created_at < now() - make_interval(hours => ${EXPIRY_HOURS}) limit ${BATCH} for update skip locked)
        returning rule_id, receiver_id, error),
      of_receivers as (update alert_receiver v set delivery_error = gone.error from gone where v.id = gone.receiver_id),
      of_rules as (update alert_rule_receiver r set error = gone.error from gone
        where r.rule_id = gone.rule_id and r.receiver_id = gone.receiver_id)
      select count(*)::int as count from gone`.execute(db);
    return rows[0]!.count;
  });

/** Removes messages that ended more than 30 days ago; answers how many. */
export const removeOldMessages = (db: Database, signal?: AbortSignal): Promise<number> => {
  const old = sql`delete from alert_message where id in (select id from alert_message
    where status = 'ENDED' and ended_at < now() - make_interval(days => ${KEPT_DAYS}) limit ${BATCH})`;
  return inBatches(BATCH, signal, () => countChanged(db, old));
};
