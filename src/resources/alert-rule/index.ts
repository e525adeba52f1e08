export { MEASURES, type Condition, type Measure } from '#resources/alert-rule/measures.ts';
export { findTarget, type TargetColumns } from '#resources/alert-rule/queries.ts';
export { alertRuleRoutes } from '#resources/alert-rule/routes.ts';
export { editLocations, locationOf } from '#resources/alert-rule/target.ts';
