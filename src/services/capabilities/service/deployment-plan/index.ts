export { planRoutes } from '#services/capabilities/service/deployment-plan/routes.ts';
export { DeploymentPlan, PLAN_DESCRIPTION, PlanQuery } from '#services/capabilities/service/deployment-plan/schema.ts';
export type { PlanNeeds } from '#services/capabilities/service/deployment-plan/needs.ts';
export { planRequest } from '#services/capabilities/service/deployment-plan/service.ts';
