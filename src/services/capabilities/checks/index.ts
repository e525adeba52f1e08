export { checkRoutes } from '#services/capabilities/checks/routes.ts';
