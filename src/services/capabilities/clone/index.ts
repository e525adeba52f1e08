export { cloneRoutes, environmentCloneRoutes } from '#services/capabilities/clone/routes.ts';
export { copyServices } from '#services/capabilities/clone/copy.ts';
export { cloneEnvironment } from '#services/capabilities/clone/service.ts';
