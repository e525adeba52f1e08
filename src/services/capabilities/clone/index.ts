export { cloneRoutes, environmentCloneRoutes } from '#services/capabilities/clone/routes.ts';
export { copyServices, type CopyRight } from '#services/capabilities/clone/copy.ts';
export { checkModeChange, cloneEnvironment, placeIn } from '#services/capabilities/clone/service.ts';
