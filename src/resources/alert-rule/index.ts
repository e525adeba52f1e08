import { badRequest, notFound } from '#kernel/errors.ts';
import { wholeList } from '#platform/http/paging.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { organizationTarget, requireOrganization } from '#resources/organization/index.ts';
import { AlertRule, AlertRuleEditRequest, AlertRuleList, AlertRuleRequest } from '#resources/alert-rule/schema.ts';

const tag = 'Alert Rules';
const ONE = '/alert-rules/{alertRuleId}';

const notThere = (): never => {
  throw notFound('Alert rule');
};

/** Rules are refused until they are evaluated: a stored rule that never fires would look like a watch (decision 0043). */
export const alertRuleRoutes: Route[] = [
  defineRoute({
    id: 'getAlertRules',
    method: 'GET',
    path: '/organization/{organizationId}/alert-rules',
    tag,
    summary: 'List the alert rules of an organization: none',
    description: 'The list is empty: this release evaluates no rules and stores none.',
    target: organizationTarget,
    action: 'alertRule.read',
    answer: { status: 200, body: AlertRuleList },
    handler: () => wholeList([]),
  }),
  defineRoute({
    id: 'createAlertRule',
    method: 'POST',
    path: '/alert-rules',
    tag,
    summary: 'Create an alert rule: refused, with the reason',
    description:
      'Every call is answered with 400 and nothing is stored: this release evaluates no rules. A webhook tells of failed deployments.',
    action: 'authenticated',
    body: AlertRuleRequest,
    answer: { status: 201, body: AlertRule },
    errors: [403],
    handler: (call) => {
      const { organization_id: organizationId } = call.body;
      requireOrganization(call, organizationId, 'alertRule.edit', 'organization_id');
      throw badRequest(
        `Alert rules are not evaluated by this release, so that none is stored: POST /organization/${organizationId}/webhook tells of deployments that fail.`,
      );
    },
  }),
  defineRoute({
    id: 'getAlertRule',
    method: 'GET',
    path: ONE,
    tag,
    summary: 'Get an alert rule: there is none',
    description: 'Every call is answered with 404, because no rule can be stored.',
    action: 'authenticated',
    answer: { status: 200, body: AlertRule },
    handler: notThere,
  }),
  defineRoute({
    id: 'editAlertRule',
    method: 'PUT',
    path: ONE,
    tag,
    summary: 'Edit an alert rule: there is none',
    description: 'Every call is answered with 404, because no rule can be stored.',
    action: 'authenticated',
    body: AlertRuleEditRequest,
    answer: { status: 200, body: AlertRule },
    handler: notThere,
  }),
  defineRoute({
    id: 'deleteAlertRule',
    method: 'DELETE',
    path: ONE,
    tag,
    summary: 'Delete an alert rule: there is none',
    description: 'Every call is answered with 404, because no rule can be stored.',
    action: 'authenticated',
    answer: { status: 204, body: null },
    handler: notThere,
  }),
];
