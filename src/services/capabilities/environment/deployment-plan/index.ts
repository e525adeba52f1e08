export { environmentPlanRoutes } from '#services/capabilities/environment/deployment-plan/routes.ts';
