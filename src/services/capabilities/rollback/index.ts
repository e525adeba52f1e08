export { environmentRollbackRoutes, rollbackRoutes } from '#services/capabilities/rollback/routes.ts';
export { findRollback, requestLastReleases } from '#services/capabilities/rollback/service.ts';
