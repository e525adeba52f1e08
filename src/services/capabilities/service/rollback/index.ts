export { rollbackRoutes } from '#services/capabilities/service/rollback/routes.ts';
export { ROLLBACK_DESCRIPTION, RollbackRequest } from '#services/capabilities/service/rollback/schema.ts';
export { findRollback, requestLastReleases, requestRollback } from '#services/capabilities/service/rollback/service.ts';
export { START_AGAIN } from '#services/capabilities/service/rollback/start-again.ts';
