export { cloneRoutes, environmentCloneRoutes } from '#services/capabilities/service/clone/routes.ts';
export { copyServices, type CopyRight } from '#services/capabilities/service/clone/copy.ts';
export { checkModeChange, cloneEnvironment, placeIn } from '#services/capabilities/service/clone/service.ts';
