import { sql, type Transaction } from '#platform/database/index.ts';
import { json } from '#platform/database/json.ts';
import { dueTable, requireHeld, type RowClaim, type WorkReport } from '#platform/work/index.ts';
import { takesSeverity } from '#resources/alert-receiver/index.ts';
import type { Condition } from '#resources/alert-rule/index.ts';
import type { Content } from '#delivery/alerts/content.ts';
import type { Finding } from '#delivery/alerts/finding.ts';

/** Claim on a rule that is due. */
export interface RuleClaim extends RowClaim {
  failures: number;
}

/** Rule with what its evaluation needs. */
export interface DueRule {
  id: string;
  organization_id: string;
  target_type: string;
  target_id: string;
  name: string;
  condition: Condition;
  for_seconds: number;
  severity: string;
  presentation: { summary?: string | null; runbook_url?: string | null };
  set_by: string | null;
  set_with: string | null;
  problem: string | null;
  /** True if it has not been evaluated for a while, as while the service was down: what happened in between is not known. */
  has_gap: boolean;
}

/** Seconds until a rule is evaluated again whose evaluation failed. */
const RETRY_SECONDS = 60;
/** Seconds without an evaluation after which a condition that still holds may have been interrupted. */
const GAP_SECONDS = 60;

const TABLE = dueTable<RuleClaim, 'alert_rule'>({
  table: 'alert_rule',
  columns: ['failures'],
  retrySeconds: RETRY_SECONDS,
  failing: {
    failures: sql`failures + 1`,
    failed_at: sql`clock_timestamp()`,
    problem: `The rule could not be evaluated because of an internal error, which the log of the server names; it is tried again every ${RETRY_SECONDS} seconds.`,
  },
  failure: { is: sql`failures > 0`, at: sql.ref('failed_at'), text: sql`name || ': ' || problem` },
});

export const { claim: claimRules, renew: renewRules, giveBack: giveBackRule } = TABLE;

/** Figures of evaluations, for operators. */
export const RULE_REPORT: WorkReport = { name: 'alert-rules', status: TABLE.status };

/** Milliseconds that each statement of an evaluation takes at most: a slow one holds one of few slots. */
const STATEMENT_MS = 10_000;

/** Gives the statements of a transaction their deadline. */
export const limitStatements = (db: Transaction) =>
  sql`select set_config('statement_timeout', ${String(STATEMENT_MS)}, true)`.execute(db);

/** Locks a claimed rule until the commit and returns it; undefined if it was disabled meanwhile. Throws ClaimLost. */
export async function lockRule(db: Transaction, claim: RuleClaim): Promise<DueRule | undefined> {
  requireHeld(await TABLE.hold(db, claim));
  const { rows } =
    await sql<DueRule>`select id, organization_id, target_type, target_id, name, condition, for_seconds, severity,
      presentation, set_by, set_with, problem, coalesce(evaluated_at < clock_timestamp() - make_interval(secs => ${GAP_SECONDS}), false) as has_gap
    from alert_rule where organization_id = ${claim.organization_id} and id = ${claim.id} and enabled`.execute(db);
  return rows[0];
}

/** Writes the end of an evaluation, or why there was none. The next one follows `seconds` after this one was due. Throws ClaimLost. */
export async function endEvaluation(
  db: Transaction,
  claim: RuleClaim,
  seconds: number,
  problem: string | null,
): Promise<void> {
  const isHeld = await TABLE.end(db, claim, {
    problem,
    failures: 0,
    next_at: sql<Date>`greatest(next_at + make_interval(secs => ${seconds}), clock_timestamp())`,
    ...(problem === null ? { evaluated_at: sql<Date>`clock_timestamp()` } : {}),
  });
  requireHeld(isHeld);
}

/** Frees a rule that was disabled between its claim and its evaluation. Throws ClaimLost. */
export const freeRule = async (db: Transaction, claim: RuleClaim): Promise<void> =>
  requireHeld(await TABLE.end(db, claim, {}));

/** Thing that a rule has found. */
export interface Incident {
  subject_id: string;
  name: string;
  detail: string;
  since: Date;
  fired_at: Date | null;
  /** True once the condition has held for the rule's duration. */
  is_due: boolean;
}

/**
 * Stores the services that fulfil the condition. One that was there before keeps its time, but where it may have been interrupted unseen: then
 * the latest event counts.
 */
export async function keepIncidents(db: Transaction, rule: DueRule, found: Finding[]): Promise<void> {
  const rows = found.map(({ subject_id, name, detail, part, since }) => ({ subject_id, name, detail, part, since }));
  await sql`insert into alert_incident as i (organization_id, rule_id, subject_id, name, detail, part, since)
    select ${rule.organization_id}, ${rule.id}, one.subject_id, one.name, coalesce(one.detail, ''), one.part,
      least(coalesce(one.since, clock_timestamp()), clock_timestamp())
    from jsonb_to_recordset(${json(rows)}::jsonb) as one (subject_id uuid, name text, detail text, part text, since timestamptz)
    on conflict (rule_id, subject_id) do update set name = excluded.name, detail = excluded.detail, part = excluded.part,
      since = case when i.fired_at is null and ${rule.has_gap} then greatest(i.since, excluded.since) else i.since end`.execute(
    db,
  );
}

export const listIncidents = async (db: Transaction, rule: DueRule): Promise<Incident[]> =>
  (
    await sql<Incident>`select subject_id, name, detail, since, fired_at,
        since + make_interval(secs => ${rule.for_seconds}) <= clock_timestamp() as is_due
      from alert_incident where rule_id = ${rule.id} order by name, subject_id`.execute(db)
  ).rows;

export const markFired = (db: Transaction, rule: DueRule, ids: string[]) =>
  sql`update alert_incident set fired_at = clock_timestamp() where rule_id = ${rule.id} and subject_id = any(${ids}::uuid[])`.execute(
    db,
  );

export const removeIncidents = (db: Transaction, rule: DueRule, ids: string[]) =>
  sql`delete from alert_incident where rule_id = ${rule.id} and subject_id = any(${ids}::uuid[])`.execute(db);

/** Receiver of a rule. */
export interface ToldReceiver {
  receiver_id: string;
  send_resolved: boolean;
  /** True if it takes messages of the rule's severity. */
  is_wanted: boolean;
  /** True if it knows all alerts of the rule that fire. */
  is_current: boolean;
}

export const listReceivers = async (db: Transaction, rule: DueRule): Promise<ToldReceiver[]> =>
  (
    await sql<ToldReceiver>`select a.receiver_id, v.send_resolved, a.is_current, ${takesSeverity(sql.ref('v.severity'), sql`${rule.severity}::text`)} as is_wanted
      from alert_rule_receiver a join alert_receiver v on v.id = a.receiver_id where a.rule_id = ${rule.id} order by a.receiver_id`.execute(
      db,
    )
  ).rows;

/** Writes which receivers know all alerts of a rule that fire: those that take its messages. */
export const markCurrent = (db: Transaction, rule: DueRule, receiverIds: string[]) =>
  sql`update alert_rule_receiver set is_current = receiver_id = any(${receiverIds}::uuid[]) where rule_id = ${rule.id}
    and is_current <> (receiver_id = any(${receiverIds}::uuid[]))`.execute(db);

/** Message of a rule that no worker has begun to send. */
export interface UnsentMessage {
  id: string;
  receiver_id: string;
  content: Content;
}

/** Lists and locks the last message of each receiver where no worker has begun to send it. */
export const lockUnsent = async (db: Transaction, rule: DueRule): Promise<UnsentMessage[]> =>
  (
    await sql<UnsentMessage>`select m.id, m.receiver_id, m.content from alert_message m
      where m.rule_id = ${rule.id} and m.status = 'WAITING' and m.status <> 'ENDED' and m.started_at is null
        and not exists (select from alert_message n where n.rule_id = m.rule_id and n.receiver_id = m.receiver_id
          and n.number > m.number and n.status <> 'ENDED')
      for update skip locked`.execute(db)
  ).rows;

/** Replaces the content of a message that no worker has begun to send; it is as old as its newest part. */
export const updateMessage = (db: Transaction, rule: DueRule, id: string, content: Content) =>
  sql`update alert_message set content = ${json(content)}::jsonb, created_at = clock_timestamp()
    where organization_id = ${rule.organization_id} and id = ${id}`.execute(db);

export const insertMessage = (db: Transaction, rule: DueRule, receiverId: string, content: Content) =>
  sql`insert into alert_message (id, organization_id, rule_id, receiver_id, content)
    values (gen_random_uuid(), ${rule.organization_id}, ${rule.id}, ${receiverId}, ${json(content)}::jsonb)`.execute(
    db,
  );
