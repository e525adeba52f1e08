import { findMakerPrincipal } from '#platform/access/makers.ts';
import { permits, type Principal } from '#platform/access/principal.ts';
import { inTransaction, systemContext, type Context, type Platform } from '#platform/context.ts';
import type { Transaction } from '#platform/database/index.ts';
import {
  editLocations,
  findTarget,
  isShared,
  locationOf,
  MEASURES,
  subjectsOf,
  type Measure,
} from '#resources/alert-rule/index.ts';
import { merge, type Content } from '#delivery/alerts/content.ts';
import { measure } from '#delivery/alerts/measure.ts';
import { measureShared } from '#delivery/alerts/measure-shared.ts';
import * as queries from '#delivery/alerts/queries.ts';

/** Channel that wakes the workers that send messages. */
export const ALERT_CHANNEL = 'alert_message';

/** Seconds between two evaluations of a rule. What begins within them is told in one message. */
const EVALUATION_SECONDS = 15;

const TARGET_GONE = 'The target of the rule is deleted: delete the rule.';
const RIGHTS_GONE =
  'The rule is not evaluated: whoever saved it last, or the token that they used, may not edit alert rules of its target any more. Somebody who may must save it again.';

/**
 * Evaluates a claimed rule in one transaction: what it found and the messages that tell of it are stored together, or not at all. Throws
 * ClaimLost.
 */
export const evaluateRule = (platform: Platform, claim: queries.RuleClaim): Promise<void> =>
  inTransaction(systemContext(platform, 'alert rules'), async (context) => {
    const db = context.db as Transaction;
    await queries.limitStatements(db);
    const rule = await queries.lockRule(db, claim);
    if (!rule) return queries.freeRule(db, claim);
    const scope = { organizationId: rule.organization_id };
    const target = await findTarget(db, scope, rule.target_type, rule.target_id);
    if (!target) return queries.endEvaluation(db, claim, EVALUATION_SECONDS, TARGET_GONE);
    const maker = await findMakerPrincipal(context, scope, { userId: rule.set_by, tokenId: rule.set_with });
    const locations = editLocations(rule.organization_id, rule.target_type, target);
    if (!maker || !locations.every((location) => permits(maker, 'alertRule.edit', location))) {
      if (rule.problem !== RIGHTS_GONE)
        context.log.warn({ ruleId: rule.id }, 'an alert rule has lost the rights of its maker');
      return queries.endEvaluation(db, claim, EVALUATION_SECONDS, RIGHTS_GONE);
    }
    await compare(context, db, rule, maker);
    await queries.endEvaluation(db, claim, EVALUATION_SECONDS, null);
  });

/** Compares what is found now with what was found before, and stores the messages that follow. */
async function compare(context: Context, db: Transaction, rule: queries.DueRule, maker: Principal): Promise<void> {
  const { promql } = rule.condition;
  const found = isShared(promql) ? await measureShared(context, rule, promql) : await measure(db, rule);
  const visible = found.filter((one) => permits(maker, one.reads, locationOf(rule.organization_id, one)));
  const holding = visible.filter(({ holds }) => holds === true);
  await queries.keepIncidents(db, rule, holding);
  const stored = await queries.listIncidents(db, rule);
  const [isFound, isVisible, holds] = [idsOf(found), idsOf(visible), idsOf(holding)];
  const fires = stored.filter((one) => holds.has(one.subject_id) && one.fired_at === null && one.is_due);
  const over = stored.filter((one) => !isFound.has(one.subject_id) && one.fired_at !== null);
  // What the maker may not see any more has not ended: nothing is told of it. What nothing is known of stays as it was.
  const gone = stored.filter((one) => !isVisible.has(one.subject_id));
  await queries.markFired(db, rule, [...idsOf(fires)]);
  await queries.removeIncidents(db, rule, [...idsOf(gone)]);
  const standing = stored.filter((one) => isVisible.has(one.subject_id) && one.fired_at !== null);
  if (await tell(context, db, rule, { fires, over, standing }))
    context.afterCommit(() => context.notify(ALERT_CHANNEL));
}

interface Changes {
  /** Alerts that begin to fire. */
  fires: queries.Incident[];
  /** Alerts that end. */
  over: queries.Incident[];
  /** Alerts that go on firing. */
  standing: queries.Incident[];
}

/**
 * Stores what each receiver is told; returns whether there is anything. A receiver that is new to the rule is told what fires, and of an end
 * only once it knows of the beginning. What no worker has begun to send is told in the same message.
 */
async function tell(context: Context, db: Transaction, rule: queries.DueRule, changes: Changes): Promise<boolean> {
  const receivers = (await queries.listReceivers(db, rule)).filter(({ is_wanted }) => is_wanted);
  await queries.markCurrent(
    db,
    rule,
    receivers.map(({ receiver_id }) => receiver_id),
  );
  const now = context.clock.now();
  const messages = receivers.map((receiver) => ({ receiver, content: contentFor(rule, receiver, changes, now) }));
  const told = messages.filter(({ content }) => content.firing.length + content.resolved.length > 0);
  if (told.length === 0) return false;
  const unsent = new Map((await queries.lockUnsent(db, rule)).map((message) => [message.receiver_id, message]));
  for (const { receiver, content } of told) {
    const present = unsent.get(receiver.receiver_id);
    if (present) await queries.updateMessage(db, rule, present.id, merge(present.content, content));
    else await queries.insertMessage(db, rule, receiver.receiver_id, merge(undefined, content));
  }
  return true;
}

const idsOf = (all: { subject_id: string }[]): Set<string> => new Set(all.map(({ subject_id }) => subject_id));

function contentFor(
  rule: queries.DueRule,
  { is_current, send_resolved }: queries.ToldReceiver,
  { fires, over, standing }: Changes,
  now: Date,
): Content {
  const subjectOf = ({ subject_id: id, name, detail, since }: queries.Incident) => ({
    id,
    name,
    detail,
    since: since.toISOString(),
  });
  return {
    rule: rule.name,
    severity: rule.severity,
    happened: MEASURES[rule.condition.promql as Measure],
    subjects: subjectsOf(rule.condition.promql),
    summary: rule.presentation.summary ?? null,
    runbook_url: rule.presentation.runbook_url ?? null,
    firing: (is_current ? fires : [...standing, ...fires]).map(subjectOf),
    resolved: is_current && send_resolved ? over.map((one) => ({ ...subjectOf(one), until: now.toISOString() })) : [],
  };
}
