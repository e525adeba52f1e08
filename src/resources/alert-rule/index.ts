export { MEASURES, type Condition, type Measure } from '#resources/alert-rule/measures.ts';
export { prepareMeasure } from '#resources/alert-rule/prepare.ts';
export { findTarget, type TargetColumns } from '#resources/alert-rule/queries.ts';
export { alertRuleRoutes } from '#resources/alert-rule/routes.ts';
export { editLocations, locationOf } from '#resources/alert-rule/target.ts';
export { isShared, subjectsOf, type SharedMeasure } from '#resources/alert-rule/shared-measures.ts';
