export { environmentPlanRoutes, planRoutes } from '#services/capabilities/service/deployment-plan/routes.ts';
