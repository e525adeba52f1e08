export { executionRoutes } from '#services/capabilities/service/executions/routes.ts';
export { cleanFailed, readNewestLog } from '#services/capabilities/service/executions/service.ts';
