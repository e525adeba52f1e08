export { environmentRollbackRoutes } from '#services/capabilities/environment/rollback/routes.ts';
