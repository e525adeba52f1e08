export { checkRoutes } from '#services/capabilities/environment/checks/routes.ts';
