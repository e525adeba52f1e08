export { environmentRollbackRoutes, rollbackRoutes } from '#services/capabilities/service/rollback/routes.ts';
export { findRollback, requestLastReleases } from '#services/capabilities/service/rollback/service.ts';
export { START_AGAIN } from '#services/capabilities/service/rollback/start-again.ts';
