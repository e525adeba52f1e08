import { conflict, invalidField } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import { makerOf } from '#platform/access/makers.ts';
import { grantIn, permits } from '#platform/access/principal.ts';
import { json } from '#platform/database/json.ts';
import type { Context } from '#platform/context.ts';
import type { Scope } from '#platform/database/index.ts';
import { audit, type EventType } from '#platform/events/audit.ts';
import type { Call } from '#platform/http/route.ts';
import { isFirstOrganization } from '#platform/installation/index.ts';
import { foreignOrganization, lockOrganization } from '#resources/organization/index.ts';
import { checkCanHold, measureOf, secondsOf, type Condition } from '#resources/alert-rule/measures.ts';
import * as queries from '#resources/alert-rule/queries.ts';
import type { AlertRule, AlertRuleEditRequest, AlertRuleRequest } from '#resources/alert-rule/schema.ts';
import { editLocations, locationOf } from '#resources/alert-rule/target.ts';

/** Largest number of rules of an organization. */
const MAX_RULES = 200;

const NO_RECEIVER =
  'No receiver takes messages of the rule: it has none, or their `severity` is above that of the rule.';

/** Returns the state of a rule in the words of the interface. */
function stateOf(row: queries.RuleRow): AlertRule['state'] {
  if (!row.enabled) return 'SUPPRESSED';
  // What it found before is not known to be true now.
  if (row.evaluated_at === null || row.problem !== null) return 'UNDEPLOYED';
  if (row.starts_at === null) return 'OK';
  if (!row.fires) return 'TRIGGERED';
  if (!row.has_receiver) return 'UNROUTED';
  if (row.sends) return 'PENDING_NOTIFICATION';
  return row.delivery_error === null ? 'NOTIFIED' : 'UNROUTED';
}

/** A rule as it is answered. */
export const toAlertRuleView = (row: queries.RuleRow) => ({
  id: row.id,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
  source: 'MANAGED' as const,
  state: stateOf(row),
  organization_id: row.organization_id,
  cluster_id: row.cluster_id,
  name: row.name,
  description: row.description,
  tag: row.tag,
  condition: row.condition as AlertRuleRequest['condition'],
  for_duration: row.for_duration,
  severity: row.severity as AlertRuleRequest['severity'],
  enabled: row.enabled,
  alert_receiver_ids: row.receiver_ids,
  presentation: row.presentation as AlertRuleRequest['presentation'],
  target: {
    target_type: (row.target_type === 'CLUSTER' ? ' CLUSTER' : row.target_type) as AlertRule['target']['target_type'],
    target_id: row.target_id,
    ...(row.service === null ? {} : { service: row.service }),
  },
  is_up_to_date: row.evaluated_at !== null && row.problem === null,
  ...(row.starts_at === null ? {} : { starts_at: row.starts_at.toISOString() }),
  problem: row.problem ?? (row.has_receiver ? row.delivery_error : NO_RECEIVER),
});

/** Caller who saves a rule. */
type Saver = Context & Pick<Call, 'principal' | 'require'>;

/** Throws 403 unless the caller may change rules of the target. */
function requireEdit(call: Saver, organizationId: string, type: string, target: queries.TargetColumns): void {
  for (const location of editLocations(organizationId, type, target)) call.require('alertRule.edit', location);
}

/** Throws 400 for a condition that cannot be evaluated, or that its target can never fulfil. */
async function refuseUnfit(
  { db }: Context,
  organizationId: string,
  condition: Condition,
  type: string,
  runtime: string,
) {
  const isOperators = await isFirstOrganization(db, organizationId);
  checkCanHold(measureOf(condition), { type, runtime, isOperators });
}

/** Finds the target of a new rule; 400 where the caller cannot see it, 403 where they may not edit its rules. */
async function targetOf(
  call: Saver,
  { organization_id: organizationId, target: input, cluster_id, condition }: AlertRuleRequest,
) {
  const type = input.target_type.trim();
  if (input.service && input.service.id !== input.target_id)
    throw invalidField('target.service.id', 'must be the id in target.target_id, which names the service');
  const target = await queries.findTarget(call.db, { organizationId }, type, input.target_id);
  if (!target || !permits(call.principal, 'alertRule.read', locationOf(organizationId, target)))
    throw invalidField('target.target_id', `must be the id of something of type ${type} in this organization`);
  requireEdit(call, organizationId, type, target);
  if (target.on_cluster_id !== cluster_id)
    throw invalidField('cluster_id', `must be ${target.on_cluster_id}, the id of the cluster that the target is on`);
  await refuseUnfit(call, organizationId, condition, type, target.runtime);
  return { target_type: type, target_id: input.target_id, target_project_id: target.project_id };
}

/** Stores a rule; it is evaluated with the rights of the caller. 409 beyond 200 in one organization. */
export async function createAlertRule(context: Saver, input: AlertRuleRequest) {
  const scope = { organizationId: input.organization_id };
  if (!grantIn(context.principal, scope.organizationId)) throw foreignOrganization('organization_id');
  const columns = columnsOf(input);
  const target = await targetOf(context, input);
  if (!(await lockOrganization(context.db, scope))) throw foreignOrganization('organization_id');
  if ((await queries.countRules(context.db, scope)) >= MAX_RULES)
    throw conflict(`An organization has at most ${MAX_RULES} alert rules: delete one first.`);
  const id = newId();
  const receivers = await receiversOf(context, scope, input.alert_receiver_ids);
  await queries.insertRule(context.db, {
    id,
    organization_id: scope.organizationId,
    cluster_id: input.cluster_id,
    ...target,
    ...columns,
    ...setBy(context),
  });
  await queries.setReceivers(context.db, scope, id, receivers);
  const view = await viewOf(context, scope, id);
  await tell(context, 'CREATE', view, { after: view });
  return view;
}

/** Replaces a rule, which is evaluated with the rights of the caller from then on. What another condition has found is forgotten. */
export async function editAlertRule(context: Saver, present: queries.RuleRow, input: AlertRuleEditRequest) {
  const scope = { organizationId: present.organization_id };
  requireEdit(context, scope.organizationId, present.target_type, present);
  const columns = columnsOf(input);
  // A rule whose target is deleted is not evaluated.
  if (present.runtime !== null)
    await refuseUnfit(context, scope.organizationId, input.condition, present.target_type, present.runtime);
  const receivers = await receiversOf(context, scope, input.alert_receiver_ids);
  await queries.updateRule(context.db, scope, present.id, {
    ...columns,
    ...setBy(context),
    problem: null,
    failures: 0,
  });
  await queries.setReceivers(context.db, scope, present.id, receivers);
  if (!input.enabled || !isSame(present, input)) await queries.forgetAlerts(context.db, scope, present.id);
  const [before, after] = [toAlertRuleView(present), await viewOf(context, scope, present.id)];
  await tell(context, 'UPDATE', after, { before, after });
  return after;
}

/** Deletes a rule with what it has found, and the messages that are not sent yet. */
export async function deleteAlertRule(context: Saver, row: queries.RuleRow): Promise<void> {
  requireEdit(context, row.organization_id, row.target_type, row);
  await queries.deleteRuleRow(context.db, { organizationId: row.organization_id }, row.id);
  const before = toAlertRuleView(row);
  await tell(context, 'DELETE', before, { before });
}

/** Tells whether two versions of a rule watch the same. */
function isSame(present: queries.RuleRow, input: AlertRuleEditRequest): boolean {
  const before = present.condition as unknown as Condition;
  return (
    before.promql === input.condition.promql &&
    (before.threshold ?? 0) === (input.condition.threshold ?? 0) &&
    present.for_seconds === secondsOf(input.for_duration)
  );
}

const viewOf = async ({ db }: Context, { organizationId }: Scope, id: string) =>
  toAlertRuleView((await queries.findRuleById(db, [organizationId], id))!);

async function receiversOf({ db }: Context, scope: Scope, ids: string[]): Promise<string[]> {
  const found = await queries.lockReceivers(db, scope, ids);
  const missing = ids.findIndex((id) => !found.includes(id));
  if (missing !== -1)
    throw invalidField(
      `alert_receiver_ids.${missing}`,
      `must be the id of an alert receiver of this organization; GET /organization/${scope.organizationId}/alert-receivers lists them`,
    );
  return found;
}

function columnsOf(input: AlertRuleEditRequest) {
  measureOf(input.condition);
  const runbook = input.presentation.runbook_url;
  if (runbook && !/^https?:$/.test(URL.parse(runbook)?.protocol ?? ''))
    throw invalidField('presentation.runbook_url', 'must be a URL that begins with https:// or http://');
  return {
    name: input.name.trim(),
    description: input.description,
    tag: input.tag,
    condition: json(input.condition),
    for_duration: input.for_duration,
    for_seconds: secondsOf(input.for_duration),
    severity: input.severity,
    presentation: json(input.presentation),
    enabled: input.enabled,
    next_at: input.enabled ? 'now' : 'infinity',
  };
}

function setBy({ actor }: Context) {
  const { userId, tokenId } = makerOf(actor);
  return { set_by: userId, set_with: tokenId };
}

const tell = (
  context: Context,
  type: EventType,
  view: ReturnType<typeof toAlertRuleView>,
  states: { before?: unknown; after?: unknown },
): Promise<void> =>
  audit(context, {
    organizationId: view.organization_id,
    type,
    target: { type: 'ORGANIZATION', id: view.id, name: view.name, sub: 'ALERT_RULE' },
    ...states,
  });
