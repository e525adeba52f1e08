export { cloneRoutes, environmentCloneRoutes } from '#services/capabilities/clone/routes.ts';
export { cloneEnvironment } from '#services/capabilities/clone/service.ts';
