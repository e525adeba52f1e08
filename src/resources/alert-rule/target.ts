import type { Location } from '#platform/access/principal.ts';
import type { Target } from '#platform/http/route.ts';
import { findRuleById, lockRule, type RuleRow, type TargetColumns } from '#resources/alert-rule/queries.ts';

export type AlertRuleTarget = Location & { rule: RuleRow };

/** Returns the location of a rule: that of its target, or the project or organization that a deleted target was in. */
export const locationOf = (organizationId: string, target: TargetColumns): Location => ({
  organizationId,
  ...(target.project_id === null ? {} : { projectId: target.project_id }),
  ...(target.environment_id === null ? {} : { environmentId: target.environment_id }),
  ...(target.mode === null ? {} : { mode: target.mode }),
  ...(target.on_cluster_id === null ? {} : { clusterId: target.on_cluster_id }),
});

/**
 * Returns the locations where saving, deleting and evaluating a rule take `alertRule.edit`: at all of them. A cluster has services of every
 * project: a role of single projects may create environments on it, and must not silence the rules of the others.
 */
export const editLocations = (organizationId: string, type: string, target: TargetColumns): Location[] =>
  type === 'CLUSTER' ? [{ organizationId }, locationOf(organizationId, target)] : [locationOf(organizationId, target)];

/** Loads the alert rule of a path, at the location of its target. */
export const alertRuleTarget: Target<AlertRuleTarget> = {
  name: 'Alert rule',
  param: 'alertRuleId',
  find: async (db, id, organizationIds, { lock }) => {
    if (lock && !(await lockRule(db, organizationIds, id))) return undefined;
    const rule = await findRuleById(db, organizationIds, id);
    return rule && { rule, ...locationOf(rule.organization_id, rule) };
  },
};
