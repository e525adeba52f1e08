export { commitRoutes } from '#services/capabilities/commits/routes.ts';
