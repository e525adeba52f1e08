export { deploymentRuleRoutes } from '#resources/deployment-rule/routes.ts';
export { nextLook, toHours } from '#resources/deployment-rule/hours.ts';
export {
  findEnvironmentRule,
  listDue,
  listServicesToSwitch,
  setNextLook,
  type EnvironmentRuleRow,
  type ProjectRuleRow,
} from '#resources/deployment-rule/queries.ts';
export { environmentRule, giveRule, matchRule } from '#resources/deployment-rule/service.ts';
