export { commitRoutes } from '#services/capabilities/service/commits/routes.ts';
