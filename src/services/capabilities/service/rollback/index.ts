export { environmentRollbackRoutes, rollbackRoutes } from '#services/capabilities/service/rollback/routes.ts';
export { findRollback, requestLastReleases } from '#services/capabilities/service/rollback/service.ts';
