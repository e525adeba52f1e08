export { environmentRollbackRoutes, rollbackRoutes } from '#services/capabilities/rollback/routes.ts';
export { findRollback, requestLastRelease } from '#services/capabilities/rollback/service.ts';
