export { environmentPlanRoutes, planRoutes } from '#services/capabilities/deployment-plan/routes.ts';
