export { planRoutes } from '#services/capabilities/service/deployment-plan/routes.ts';
export { DeploymentPlan, PLAN_DESCRIPTION, PlanQuery } from '#services/capabilities/service/deployment-plan/schema.ts';
export { planRequest, type PlanNeeds } from '#services/capabilities/service/deployment-plan/service.ts';
