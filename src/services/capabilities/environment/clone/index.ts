export { environmentCloneRoutes } from '#services/capabilities/environment/clone/routes.ts';
export { checkModeChange, cloneEnvironment } from '#services/capabilities/environment/clone/service.ts';
