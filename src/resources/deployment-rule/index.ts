export { applyDeploymentRules } from '#resources/deployment-rule/apply.ts';
export { deploymentRuleRoutes } from '#resources/deployment-rule/routes.ts';
export type { EnvironmentRuleRow, ProjectRuleRow } from '#resources/deployment-rule/queries.ts';
export { environmentRule, giveRule, matchRule } from '#resources/deployment-rule/service.ts';
