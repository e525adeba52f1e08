import { slicePage } from '#platform/http/paging.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { PageQuery } from '#platform/http/schema.ts';
import { organizationTarget } from '#resources/organization/index.ts';
import { listRules } from '#resources/alert-rule/queries.ts';
import { AlertRule, AlertRuleEditRequest, AlertRuleList, AlertRuleRequest } from '#resources/alert-rule/schema.ts';
import * as service from '#resources/alert-rule/service.ts';
import { alertRuleTarget, locationOf } from '#resources/alert-rule/target.ts';

const tag = 'Alert Rules';
const ONE = '/alert-rules/{alertRuleId}';

export const alertRuleRoutes: Route[] = [
  defineRoute({
    id: 'getAlertRules',
    method: 'GET',
    path: '/organization/{organizationId}/alert-rules',
    tag,
    summary: 'List the alert rules of an organization',
    description: 'Answers the rules whose targets you may see, each with its state.',
    target: organizationTarget,
    action: 'alertRule.read',
    filtersRows: true,
    query: PageQuery,
    answer: { status: 200, body: AlertRuleList },
    handler: async ({ db, target, query, may }) => {
      const rows = await listRules(db, target);
      const visible = rows.filter((row) => may?.('alertRule.read', locationOf(row.organization_id, row)));
      return slicePage(visible.map(service.toAlertRuleView), query);
    },
  }),
  defineRoute({
    id: 'createAlertRule',
    method: 'POST',
    path: '/alert-rules',
    tag,
    summary: 'Create an alert rule',
    description:
      'Watches a service, or all services of an environment or cluster, every 15 seconds with your rights, and sends a message to the receivers when the condition has held for the duration, and when it ends. A condition that cannot be evaluated is refused. For a cluster it takes the right in the whole organization.',
    action: 'authenticated',
    body: AlertRuleRequest,
    answer: { status: 201, body: AlertRule },
    errors: [403, 409],
    handler: (call) => service.createAlertRule(call, call.body),
  }),
  defineRoute({
    id: 'getAlertRule',
    method: 'GET',
    path: ONE,
    tag,
    summary: 'Get an alert rule',
    description: 'Answers the rule with its state; `problem` says why it is not evaluated or a message did not arrive.',
    target: alertRuleTarget,
    action: 'alertRule.read',
    answer: { status: 200, body: AlertRule },
    handler: ({ target }) => service.toAlertRuleView(target.rule),
  }),
  defineRoute({
    id: 'editAlertRule',
    method: 'PUT',
    path: ONE,
    tag,
    summary: 'Edit an alert rule',
    description:
      'The rule is evaluated with your rights from then on. Disabling it, or another condition or duration, forgets its alerts without a message.',
    target: alertRuleTarget,
    action: 'alertRule.edit',
    body: AlertRuleEditRequest,
    answer: { status: 200, body: AlertRule },
    handler: (call) => service.editAlertRule(call, call.target.rule, call.body),
  }),
  defineRoute({
    id: 'deleteAlertRule',
    method: 'DELETE',
    path: ONE,
    tag,
    summary: 'Delete an alert rule',
    description: 'Removes the rule, its alerts and the messages that are not sent yet.',
    target: alertRuleTarget,
    action: 'alertRule.edit',
    answer: { status: 204, body: null },
    handler: (call) => service.deleteAlertRule(call, call.target.rule),
  }),
];
