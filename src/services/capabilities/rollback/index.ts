export { environmentRollbackRoutes, rollbackRoutes } from '#services/capabilities/rollback/routes.ts';
export { findRollback } from '#services/capabilities/rollback/service.ts';
