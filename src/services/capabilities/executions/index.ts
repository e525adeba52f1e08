export { executionRoutes } from '#services/capabilities/executions/routes.ts';
export { cleanFailed, readNewestLog } from '#services/capabilities/executions/service.ts';
